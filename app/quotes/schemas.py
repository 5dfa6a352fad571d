"""Quotes on the wire, as the OpenAPI document states them.

The hot route decodes with the structs of `request.py`; a test holds the two against each other.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from app.wallets.schemas import AddressText, Amount
from supplier_agent.protocol import MAX_MESSAGES, OUTPUT_TOKEN_LIMIT

Hex32 = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{64}$")]
HexBytes = Annotated[str, Field(pattern="^0x([0-9a-fA-F]{2})*$")]
Decimal = Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,77})$")]
Region = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]


Stop = Annotated[str, Field(min_length=1, max_length=64)]
Unsent = SkipJsonSchema[None]
"""In Python a field that was not sent is None; on the wire null is refused."""


def optional(description: str | None = None) -> Any:
    """Return a field that may be left out but not be null."""
    return Field(
        default=None, description=description, json_schema_extra=lambda shown: shown.pop("default")
    )


class Wire(BaseModel):
    """A wire object that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MessageIn(Wire):
    """One turn of the conversation. The last one is the user's."""

    role: Literal["system", "user", "assistant"]
    content: str


class JsonSchemaIn(Wire):
    """A named JSON schema (draft 2020-12); an answer cut at the ceiling is only its beginning."""

    name: Annotated[str, Field(pattern="^[a-zA-Z0-9_-]{1,64}$")]
    schema_: dict[str, object] = Field(alias="schema")


class ResponseFormatIn(Wire):
    """How the answer is constrained."""

    type: Literal["json_schema"]
    json_schema: JsonSchemaIn


class InferenceRequestIn(Wire):
    """What is asked of the model. Only fields that are sent count; none may be null."""

    model: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._/-]{0,127}$")]
    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=MAX_MESSAGES)]
    max_output_tokens: Annotated[int, Field(ge=1, le=OUTPUT_TOKEN_LIMIT)]
    temperature: Annotated[float, Field(ge=0, le=2)] | Unsent = optional()
    top_p: Annotated[float, Field(gt=0, le=1)] | Unsent = optional()
    seed: Annotated[int, Field(ge=0, le=2**32 - 2)] | Unsent = optional()
    stop: Annotated[list[Stop], Field(min_length=1, max_length=4)] | Unsent = optional()
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | Unsent = optional()
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | Unsent = optional()
    response_format: ResponseFormatIn | Unsent = optional()


class QuoteIn(Wire):
    """Ask for a quote."""

    payer: AddressText
    salt: Hex32 = Field(description="32 random bytes; keeps a short prompt from being guessed.")
    request: InferenceRequestIn
    region: Region | Unsent = optional("Where it must run; anywhere when left out.")


class QuoteMessage(Wire):
    """The signed EIP-712 message."""

    quoteId: Hex32  # noqa: N815 -- EIP-712 names
    payer: AddressText
    model: str
    modelRevision: Hex32  # noqa: N815
    region: str
    requestDigest: Hex32  # noqa: N815
    inputTokens: Decimal  # noqa: N815
    maxOutputTokens: Decimal  # noqa: N815
    inputRateNano: Decimal  # noqa: N815
    outputRateNano: Decimal  # noqa: N815
    perRequestNano: Decimal  # noqa: N815
    token: AddressText
    maxChargeNano: Decimal  # noqa: N815
    askNano: Decimal  # noqa: N815
    loadPpm: Decimal  # noqa: N815
    pricePointAt: Decimal  # noqa: N815
    curveVersion: Decimal  # noqa: N815
    runSeconds: Decimal  # noqa: N815
    issuedAt: Decimal  # noqa: N815
    expiresAt: Decimal  # noqa: N815


class RatesOut(Wire):
    """Prices in settlement tokens."""

    input_per_mtok: Amount
    output_per_mtok: Amount
    per_request: Amount


class PriceOut(Wire):
    """How the price came about."""

    load: Annotated[str, Field(pattern=r"^[01]\.[0-9]{6}$")]
    floor: RatesOut
    rates: RatesOut
    max_charge: Amount


class TypedData(Wire):
    """What `eth_signTypedData_v4` takes."""

    types: dict[str, list[dict[str, str]]]
    primaryType: str  # noqa: N815
    domain: dict[str, str | int]
    message: dict[str, str]


class QuoteOut(Wire):
    """A signed offer. It reserves nothing and binds us until it expires."""

    id: Annotated[str, Field(pattern="^quote_[0-9a-f-]{36}$")]
    quote: QuoteMessage
    signature: HexBytes
    digest: Hex32
    price: PriceOut
    authorization: TypedData = Field(description="Sign this to accept.")
