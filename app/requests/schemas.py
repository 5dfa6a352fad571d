"""Requests and jobs on the wire, as the OpenAPI document states them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.quotes.schemas import Hex32, HexBytes, InferenceRequestIn, QuoteMessage
from app.wallets.schemas import AddressText, Amount

Decimal = Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,77})$")]
JobId = Annotated[str, Field(pattern="^job_[0-9a-f-]{36}$")]


class Wire(BaseModel):
    """A wire object that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AuthorizationMessage(Wire):
    """The RequestAuthorization that the wallet signed (EIP-712)."""

    payer: AddressText
    delegation: Hex32
    quoteDigest: Hex32  # noqa: N815 -- EIP-712 names
    requestDigest: Hex32  # noqa: N815
    model: str
    maxOutputTokens: Decimal  # noqa: N815
    token: AddressText
    maxChargeNano: Decimal  # noqa: N815
    validAfter: Decimal  # noqa: N815
    deadline: Decimal
    nonce: Hex32


class RequestIn(Wire):
    """Accept a quote: the quote, the request it was made for, and the wallet's authorization."""

    quote: QuoteMessage
    quote_signature: HexBytes
    request: InferenceRequestIn
    salt: Hex32
    authorization: AuthorizationMessage
    signature: HexBytes


class AnswerOut(Wire):
    """What the model said."""

    content: str
    finish_reason: Literal["stop", "length", "tool_calls"]


class UsageOut(Wire):
    """Measured tokens; cached ones are part of the input."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class FailureOut(Wire):
    """Why there is no answer."""

    code: str
    detail: str


class RecordOut(Wire):
    """The signed usage record (EIP-712); it goes into the receipt log."""

    message: dict[str, str]
    digest: Hex32
    signature: HexBytes
    key_id: str


class JobOut(Wire):
    """One accepted request."""

    id: JobId
    state: Literal["queued", "accepted", "running", "completed", "failed", "cancelled", "expired"]
    model: str
    region: str
    supplier: str | None = Field(description="Who served the last attempt.")
    attempts: int
    quote_id: str
    created_at: str
    deadline_at: str
    completed_at: str | None
    answer: AnswerOut | None = Field(description="Null until completed, and after `answer_until`.")
    answer_until: str = Field(description="When request and answer are deleted.")
    usage: UsageOut | None
    held: Amount
    charge: Amount | None = Field(description="Null until the job has ended.")
    released: Amount | None
    failure: FailureOut | None
    record: RecordOut | None


class JobLineOut(Wire):
    """One job in a list; `GET /v1/jobs/{id}` shows all of it."""

    id: JobId
    state: Literal["queued", "accepted", "running", "completed", "failed", "cancelled", "expired"]
    model: str
    region: str
    created_at: str
    completed_at: str | None
    held: Amount
    charge: Amount | None = Field(description="Null until the job has ended.")


class JobPageOut(Wire):
    """Some of a wallet's jobs, newest first."""

    jobs: list[JobLineOut]
    next: JobId | None = Field(description="Pass as `before` for the next page; null: no more.")
