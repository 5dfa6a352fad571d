"""From a question to a signed quote. Writes nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from app.capacity.market import PricedMarket
from app.capacity.service import MarketPrice, MarketService
from app.kit.clock import unix_seconds
from app.kit.ids import IdSource
from app.models.catalogue import Catalogue
from app.models.messages import Message
from app.models.release import ModelRelease
from app.models.tokenizer import CountingTokenizer
from app.quotes.errors import PromptTooLong
from app.quotes.quote import (
    Asked,
    IssuedQuotes,
    Priced,
    QuoteKey,
    SignedQuote,
    Validity,
    authorization_for,
    make_quote,
    sign_quote,
)
from app.quotes.response_format import check_response_format
from ledger.authorization import RequestAuthorization
from ledger.commitment import request_digest
from ledger.encoding import Address, Domain
from ledger.signing import SigningKey
from pricing.errors import RunTooLong
from supplier_agent.protocol import InferenceRequest

INLINE_CHARACTERS = 20_000
"""A longer prompt is counted in a thread: above it, counting would hold the loop over 5 ms."""


@dataclass(frozen=True, slots=True)
class QuoteTerms:
    """What every quote of this gateway has in common."""

    domain: Domain
    token: Address
    expiry: timedelta
    max_prompt_tokens: int
    min_run_seconds: int
    max_run_seconds: int


@dataclass(frozen=True, slots=True)
class Question:
    """A quote request, decoded."""

    payer: Address
    salt: bytes
    request: InferenceRequest
    region: str | None


@dataclass(frozen=True, slots=True)
class OfferedQuote:
    """A signed quote, the authorization to sign, and the price it rests on."""

    signed: SignedQuote
    authorization: RequestAuthorization
    price: MarketPrice


class PromptCounter:
    """Counts prompts of every approved release; checks the conversation's rules on the way."""

    def __init__(self, catalogue: Catalogue, *, max_prompt_tokens: int) -> None:
        """Load all tokenizers: about 0.1 s of CPU and 20 MB each."""
        self._max_prompt_tokens = max_prompt_tokens
        self._tokenizers = {
            release.id: CountingTokenizer(release, catalogue.folder_of(release))
            for release in catalogue
        }

    def tokenizer(self, release: ModelRelease) -> CountingTokenizer:
        """Return the release's tokenizer, for whoever counts answers."""
        return self._tokenizers[release.id]

    async def count(self, release: ModelRelease, request: InferenceRequest) -> int:
        """Return the prompt's tokens; the ceiling is known to fit beside them.

        Raises:
            MessagesError, PromptTooLarge, ContextExceeded: see `app.models`.
            PromptTooLong: over this gateway's own limit.
        """
        messages = [Message(turn.role, turn.content) for turn in request.messages]
        count = self._tokenizers[release.id].count_prompt
        if sum(len(message.content) for message in messages) > INLINE_CHARACTERS:
            tokens = await asyncio.to_thread(count, messages)
        else:
            tokens = count(messages)
        if tokens > self._max_prompt_tokens:
            raise PromptTooLong(input_tokens=tokens, limit_tokens=self._max_prompt_tokens)
        release.ensure_fits(input_tokens=tokens, max_output_tokens=request.max_output_tokens)
        return tokens


@dataclass(frozen=True, slots=True)
class QuoteSources:
    """Where a quote's facts and its randomness come from."""

    catalogue: Catalogue
    counter: PromptCounter
    market: MarketService
    ids: IdSource
    random_bytes: Callable[[int], bytes]


class QuoteService:
    """Makes signed quotes."""

    def __init__(self, sources: QuoteSources, terms: QuoteTerms, *, key: SigningKey) -> None:
        self._sources = sources
        self._terms = terms
        self._signing_key = key
        self.key = QuoteKey(key.address, terms.domain, IssuedQuotes())

    async def quote(self, question: Question) -> OfferedQuote:
        """Return a signed quote for exactly this request.

        The market is asked before the prompt is counted, so that without capacity a refusal
        costs little.

        Raises:
            UnknownModel, MessagesError, ContextExceeded, PromptTooLarge: see `app.models`.
            BadSchema, PromptTooLong: see `quotes.errors`.
            NoFreshOffer, PriceStale: see `app.capacity`.
            RunTooLong, AmountOutOfRange, NotCanonical: the request is beyond what can be priced.
        """
        release = self._sources.catalogue.get(question.request.model)
        price = self._sources.market.price(release.id, region=question.region)
        check_response_format(question.request)
        input_tokens = await self._sources.counter.count(release, question.request)
        market = price.market
        asked = Asked(
            payer=question.payer,
            model=release.id,
            model_revision=bytes.fromhex(release.revision[2:]),
            region=market.region,
            request_digest=request_digest(question.salt, question.request.canonical()),
            input_tokens=input_tokens,
            max_output_tokens=question.request.max_output_tokens,
        )
        priced = Priced(
            rates=price.rates,
            ask=price.ask,
            load_ppm=market.point.load_ppm,
            price_point_at=unix_seconds(market.point.at),
            curve_version=market.point.curve_version,
            run_seconds=self._run_seconds(market, input_tokens, asked.max_output_tokens),
        )
        signed = sign_quote(
            make_quote(asked, priced, self._validity()),
            key=self._signing_key,
            domain=self._terms.domain,
        )
        self.key.issued.add(signed)
        nonce = self._sources.random_bytes(32)
        return OfferedQuote(signed, authorization_for(signed, nonce=nonce), price)

    def _run_seconds(self, market: PricedMarket, input_tokens: int, max_output_tokens: int) -> int:
        seconds = self._sources.market.run_seconds(market, input_tokens, max_output_tokens)
        if seconds > self._terms.max_run_seconds:
            raise RunTooLong(seconds=seconds, limit_seconds=self._terms.max_run_seconds)
        return max(seconds, self._terms.min_run_seconds)

    def _validity(self) -> Validity:
        now = self._sources.market.now()
        return Validity(
            quote_id=self._sources.ids.new(),
            token=self._terms.token,
            issued_at=unix_seconds(now),
            expires_at=unix_seconds(now + self._terms.expiry),
        )
