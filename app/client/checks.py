"""What must hold before the wallet signs. Pure: the gateway's answer is compared, not believed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.client.asking import Asked
from app.client.documents import QuoteDocument
from app.client.errors import (
    MaximumExceeded,
    QuoteDiffers,
    QuoteExpired,
    QuoteForged,
    WrongChain,
    WrongDomain,
)
from app.client.terms import Terms
from ledger.authorization import NO_DELEGATION, RequestAuthorization
from ledger.encoding import Address, checksum_address
from ledger.errors import BadSignature, MalformedTypedData
from ledger.money import RATE_UNIT, Nano, format_amount
from ledger.quote import Quote
from ledger.signing import recover


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedQuote:
    """A quote that says what was asked, and the authorization that accepts it and nothing else."""

    asked: Asked
    document: QuoteDocument
    quote: Quote
    digest: bytes
    signer: Address
    """The quote key: the usage record must be signed by it too."""
    authorization: RequestAuthorization
    authorization_digest: bytes = field(repr=False)


def checked_quote(document: QuoteDocument, asked: Asked, terms: Terms, *, now: int) -> CheckedQuote:
    """Return the quote, ready to sign.

    The typed data's domain is checked first, then the quote's signature, then every field of the
    quote and of the authorization against what was asked; the digests are our own computation.

    Raises:
        WrongChain, WrongDomain, QuoteForged, QuoteDiffers, QuoteExpired, MaximumExceeded
    """
    check_domain(_mapping(document.authorization, "domain"), terms)
    try:
        quote = Quote.parse(document.quote)
        message = _mapping(document.authorization, "message")
        authorization = RequestAuthorization.parse(message)
    except MalformedTypedData as error:
        raise QuoteDiffers(
            error.field, expected="a well-formed value", found=error.reason
        ) from None
    digest = quote.digest(terms.domain)
    _same("digest", "0x" + digest.hex(), document.digest)
    signer = quote_signer(digest, document.signature, pinned=terms.quote_signer)
    check_quote(quote, asked, terms)
    if quote.expires_at <= now:
        raise QuoteExpired(f"it expired {now - quote.expires_at} s ago")
    check_authorization(authorization, quote, digest)
    typed_data = authorization.typed_data(terms.domain)
    for part in ("types", "primaryType"):
        _same(part, typed_data[part], document.authorization.get(part))
    if asked.limit is not None and quote.max_charge_nano > asked.limit:
        raise MaximumExceeded(
            maximum=format_amount(quote.max_charge_nano), limit=format_amount(asked.limit)
        )
    return CheckedQuote(
        asked=asked,
        document=document,
        quote=quote,
        digest=digest,
        signer=signer,
        authorization=authorization,
        authorization_digest=authorization.digest(terms.domain),
    )


def check_domain(domain: Mapping[str, object], terms: Terms) -> None:
    """Return if the typed data is for the chain and the contract that the buyer set.

    Raises:
        WrongChain: another chain, the usual mistake. WrongDomain: another name or contract.
    """
    chain_id = domain.get("chainId")
    if chain_id != terms.chain_id:
        found = chain_id if isinstance(chain_id, int) else 0
        raise WrongChain(expected=terms.chain_id, found=found)
    expected = terms.domain.message()
    for name in sorted(expected.keys() | domain.keys()):
        if domain.get(name) != expected.get(name):
            raise WrongDomain(name, expected=expected.get(name), found=domain.get(name))


def quote_signer(digest: bytes, signature: str, *, pinned: Address | None) -> Address:
    """Return the address that signed the quote.

    Raises:
        QuoteForged: no acceptable signature, or not by the pinned key.
    """
    try:
        signer = recover(digest, bytes.fromhex(signature.removeprefix("0x")))
    except (BadSignature, ValueError) as error:
        raise QuoteForged(str(error)) from None
    if pinned is not None and signer != pinned:
        found, expected = checksum_address(signer), checksum_address(pinned)
        raise QuoteForged(f"signed by {found}, the pinned quote key is {expected}")
    return signer


def check_quote(quote: Quote, asked: Asked, terms: Terms) -> None:
    """Return if the quote is for exactly this question, payer and token, and adds up.

    Raises:
        QuoteDiffers: naming the first field that is not as asked.
    """
    question = asked.question
    _same("payer", asked.payer, quote.payer)
    _same("model", question.model, quote.model)
    _same("requestDigest", asked.digest().hex(), quote.request_digest.hex())
    _same("maxOutputTokens", question.max_output_tokens, quote.max_output_tokens)
    _same("token", terms.token, quote.token)
    if asked.region is not None:
        _same("region", asked.region, quote.region)
    _same("maxChargeNano", highest_charge(quote), quote.max_charge_nano)


def highest_charge(quote: Quote) -> Nano:
    """Return what the ceiling costs at the quote's rates, rounded up: its maximum charge."""
    parts = (
        quote.per_request_nano * RATE_UNIT
        + quote.input_tokens * quote.input_rate_nano
        + quote.max_output_tokens * quote.output_rate_nano
    )
    return Nano(-(-parts // RATE_UNIT))


def check_authorization(
    authorization: RequestAuthorization, quote: Quote, quote_digest: bytes
) -> None:
    """Return if the authorization accepts this quote and nothing more.

    Raises:
        QuoteDiffers: naming the first field that the quote does not say.
    """
    _same("payer", quote.payer, authorization.payer)
    _same("delegation", NO_DELEGATION.hex(), authorization.delegation.hex())
    _same("quoteDigest", quote_digest.hex(), authorization.quote_digest.hex())
    _same("requestDigest", quote.request_digest.hex(), authorization.request_digest.hex())
    _same("model", quote.model, authorization.model)
    _same("maxOutputTokens", quote.max_output_tokens, authorization.max_output_tokens)
    _same("token", quote.token, authorization.token)
    _same("maxChargeNano", quote.max_charge_nano, authorization.max_charge_nano)
    if authorization.deadline > quote.expires_at:
        raise QuoteDiffers(
            "deadline", expected=f"at most {quote.expires_at}", found=authorization.deadline
        )


def _same(field_name: str, expected: object, found: object) -> None:
    if expected != found:
        raise QuoteDiffers(field_name, expected=expected, found=found)


def _mapping(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = document.get(name)
    if not isinstance(found, Mapping):
        raise QuoteDiffers(name, expected="an object", found=type(found).__name__)
    return found
