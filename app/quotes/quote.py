"""Making a quote, and checking that an acceptance says exactly what was quoted. All pure.

Expiry and validity in time are not judged here: acceptance judges them by the database clock.
"""

from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from app.quotes.errors import QuoteForged, RequestMismatch
from ledger.authorization import NO_DELEGATION, RequestAuthorization
from ledger.commitment import request_digest
from ledger.encoding import Address, Domain, uuid_bytes32
from ledger.errors import BadSignature
from ledger.money import Nano
from ledger.quote import Quote
from ledger.signing import SigningKey, recover
from pricing.charge import max_charge
from pricing.rates import Rates


@dataclass(frozen=True, slots=True)
class Asked:
    """What the buyer wants, measured by us."""

    payer: Address
    model: str
    model_revision: bytes
    region: str
    request_digest: bytes
    input_tokens: int
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class Priced:
    """What it costs right now, and the facts that the price follows from."""

    rates: Rates
    ask: Nano
    load_ppm: int
    price_point_at: int
    curve_version: int
    run_seconds: int


@dataclass(frozen=True, slots=True)
class Validity:
    """Which quote this is and how long it may be accepted; unix seconds."""

    quote_id: UUID
    token: Address
    issued_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class SignedQuote:
    """A quote with its EIP-712 digest and the gateway's signature."""

    quote: Quote
    digest: bytes
    signature: bytes


def make_quote(asked: Asked, priced: Priced, validity: Validity) -> Quote:
    """Return the quote; its maximum charge is rounded up.

    Raises:
        AmountOutOfRange: the maximum does not fit the ledger.
    """
    return Quote(
        quote_id=uuid_bytes32(validity.quote_id),
        payer=asked.payer,
        model=asked.model,
        model_revision=asked.model_revision,
        region=asked.region,
        request_digest=asked.request_digest,
        input_tokens=asked.input_tokens,
        max_output_tokens=asked.max_output_tokens,
        input_rate_nano=priced.rates.input_rate,
        output_rate_nano=priced.rates.output_rate,
        per_request_nano=priced.rates.per_request,
        token=validity.token,
        max_charge_nano=max_charge(priced.rates, asked.input_tokens, asked.max_output_tokens),
        ask_nano=priced.ask,
        load_ppm=priced.load_ppm,
        price_point_at=priced.price_point_at,
        curve_version=priced.curve_version,
        run_seconds=priced.run_seconds,
        issued_at=validity.issued_at,
        expires_at=validity.expires_at,
    )


def sign_quote(quote: Quote, *, key: SigningKey, domain: Domain) -> SignedQuote:
    """Return the quote signed; the same quote and key always give the same bytes."""
    digest = quote.digest(domain)
    return SignedQuote(quote, digest, key.sign(digest))


def authorization_for(signed: SignedQuote, *, nonce: bytes) -> RequestAuthorization:
    """Return what the payer signs to accept: good from the quote's issue until it expires."""
    quote = signed.quote
    return RequestAuthorization(
        payer=quote.payer,
        delegation=NO_DELEGATION,
        quote_digest=signed.digest,
        request_digest=quote.request_digest,
        model=quote.model,
        max_output_tokens=quote.max_output_tokens,
        token=quote.token,
        max_charge_nano=quote.max_charge_nano,
        valid_after=quote.issued_at,
        deadline=quote.expires_at,
        nonce=nonce,
    )


@dataclass(frozen=True, slots=True)
class Presented:
    """What an acceptance carries, parsed but not believed."""

    quote: Quote
    quote_signature: bytes
    request_canonical: bytes
    salt: bytes
    authorization: RequestAuthorization
    signature: bytes


@dataclass(frozen=True, slots=True)
class CheckedAcceptance:
    """An acceptance whose three parts agree under a quote of ours; its signer is checked apart."""

    presented: Presented
    quote_digest: bytes
    authorization_digest: bytes


class IssuedQuotes:
    """The last quotes signed here, so that their signatures need no recovery (42 us each).

    Signing is deterministic: a quote of ours with other signature bytes is checked like any other.
    """

    def __init__(self, *, remembered: int = 20_000) -> None:
        self._signatures: OrderedDict[bytes, bytes] = OrderedDict()
        self._remembered = remembered

    def add(self, signed: SignedQuote) -> None:
        """Remember a quote, forgetting the oldest of too many."""
        self._signatures[signed.digest] = signed.signature
        if len(self._signatures) > self._remembered:
            self._signatures.popitem(last=False)

    def has(self, digest: bytes, signature: bytes) -> bool:
        """Return whether exactly this was signed here lately."""
        return self._signatures.get(digest) == signature


@dataclass(frozen=True, slots=True)
class QuoteKey:
    """Whose signature makes a quote ours, under which domain."""

    signer: Address
    domain: Domain
    issued: IssuedQuotes


def check_acceptance(presented: Presented, key: QuoteKey) -> CheckedAcceptance:
    """Return the acceptance with its digests; its payer's signature is still to be checked.

    The quote is checked first: nothing that it says is used before its signature is known good.

    Raises:
        QuoteForged: not signed by our key under our domain.
        RequestMismatch: request or authorization differ from the quote.
    """
    quote_digest = check_quote(presented.quote, presented.quote_signature, key)
    asked = request_digest(presented.salt, presented.request_canonical)
    if asked != presented.quote.request_digest:
        raise RequestMismatch(field="request")
    check_authorization(presented.authorization, SignedQuote(presented.quote, quote_digest, b""))
    digest = presented.authorization.digest(key.domain)
    return CheckedAcceptance(presented, quote_digest, digest)


def check_quote(quote: Quote, signature: bytes, key: QuoteKey) -> bytes:
    """Return the digest of a quote that our key signed.

    Raises:
        QuoteForged: it did not, or the signature has no acceptable form.
    """
    digest = quote.digest(key.domain)
    if key.issued.has(digest, signature):
        return digest
    try:
        signer = recover(digest, signature)
    except BadSignature as error:
        raise QuoteForged(str(error)) from None
    if signer != key.signer:
        raise QuoteForged("the quote's figures were changed or another key signed them")
    return digest


def check_authorization(authorization: RequestAuthorization, signed: SignedQuote) -> None:
    """Return if the authorization is for this quote and nothing else.

    Raises:
        RequestMismatch: naming the first field that differs. A delegation is refused so too.
    """
    expected = authorization_for(signed, nonce=authorization.nonce)
    for name in (
        "payer",
        "delegation",
        "quote_digest",
        "request_digest",
        "model",
        "max_output_tokens",
        "token",
        "max_charge_nano",
    ):
        if getattr(authorization, name) != getattr(expected, name):
            raise RequestMismatch(field=name)
