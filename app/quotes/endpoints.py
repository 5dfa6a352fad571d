"""HTTP for quotes: one thin route."""

from typing import Annotated
from uuid import UUID

import msgspec
import orjson
from msgspec import UNSET, Meta, UnsetType
from starlette.types import Receive, Scope, Send

from app.kit.errors import MalformedRequest
from app.kit.ids import IdPrefix, format_id
from app.kit.raw_routes import Answer, RawRoute, Strict, read_json, send_json
from app.quotes.schemas import QuoteIn, QuoteOut
from app.quotes.service import OfferedQuote, Question, QuoteService
from ledger.encoding import Domain, parse_address
from ledger.errors import BadAddress
from ledger.money import format_amount
from pricing.floor import Floor
from pricing.rates import Rates
from supplier_agent.protocol import InferenceRequest

PPM_DIGITS = 6


class QuoteWire(Strict, frozen=True):
    """The body of a quote request."""

    payer: str
    salt: Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]
    request: InferenceRequest
    region: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,63}\Z")] | UnsetType = UNSET


DECODER = msgspec.json.Decoder(QuoteWire)


class PostQuote:
    """`POST /v1/quotes`."""

    def __init__(self, service: QuoteService, *, domain: Domain, limit_bytes: int) -> None:
        self._service = service
        self._domain = domain
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decode, ask the service, answer."""
        wire = await read_json(scope, receive, decoder=DECODER, limit_bytes=self._limit_bytes)
        offered = await self._service.quote(question_of(wire))
        await send_json(send, orjson.dumps(quote_body(offered, self._domain)))


def question_of(wire: QuoteWire) -> Question:
    """Return the decoded body as the service takes it.

    Raises:
        MalformedRequest: the payer is no address.
    """
    try:
        payer = parse_address(wire.payer)
    except BadAddress as error:
        raise MalformedRequest(field="payer", reason=error.reason) from None
    region = None if isinstance(wire.region, UnsetType) else wire.region
    return Question(payer, bytes.fromhex(wire.salt[2:]), wire.request, region)


def quote_body(offered: OfferedQuote, domain: Domain) -> dict[str, object]:
    """Return the response, as `schemas.QuoteOut` states it."""
    signed = offered.signed
    quote = signed.quote
    return {
        "id": format_id(IdPrefix.QUOTE, UUID(bytes=quote.quote_id[16:])),
        "quote": quote.message(),
        "signature": "0x" + signed.signature.hex(),
        "digest": "0x" + signed.digest.hex(),
        "price": {
            "load": load_text(quote.load_ppm),
            "floor": rates_body(offered.price.market.point.floor),
            "rates": rates_body(offered.price.rates),
            "max_charge": format_amount(quote.max_charge_nano),
        },
        "authorization": offered.authorization.typed_data(domain),
    }


def rates_body(rates: Rates | Floor) -> dict[str, str]:
    """Return rates as decimal strings of the token."""
    return {
        "input_per_mtok": format_amount(rates.input_rate),
        "output_per_mtok": format_amount(rates.output_rate),
        "per_request": format_amount(rates.per_request),
    }


def load_text(ppm: int) -> str:
    """Return a load in millionths as a decimal fraction, `0.250000`."""
    whole, part = divmod(ppm, 10**PPM_DIGITS)
    return f"{whole}.{part:0{PPM_DIGITS}d}"


def routes(service: QuoteService, *, domain: Domain, limit_bytes: int) -> list[RawRoute]:
    """Return the feature's thin routes with their contract."""
    return [
        RawRoute(
            path="/v1/quotes",
            method="POST",
            endpoint=PostQuote(service, domain=domain, limit_bytes=limit_bytes),
            operation_id="create_quote",
            summary="Get a signed quote for one request",
            tag="quotes",
            request=QuoteIn,
            answers={200: Answer("The signed quote, good until it expires.", QuoteOut)},
            refusals=(400, 413, 415, 422, 503),
        )
    ]
