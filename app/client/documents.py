"""What the gateway answers, as the client reads it: only what it uses, unknown members ignored.

The server refuses unknown members; a client that did so would break with every addition.
"""

from pydantic import BaseModel, ConfigDict, JsonValue

Message = dict[str, str]
"""An EIP-712 message as it travels; `ledger` parses it strictly."""


class Document(BaseModel):
    """A tolerant, immutable reader."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class QuoteDocument(Document):
    """`POST /v1/quotes`: the signed quote and what would accept it."""

    id: str
    quote: Message
    signature: str
    digest: str
    price: dict[str, JsonValue]
    authorization: dict[str, JsonValue]


class Answer(Document):
    """The model's text and why it ended."""

    content: str
    finish_reason: str


class Usage(Document):
    """Measured tokens; cached ones are part of the input."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class Failure(Document):
    """Why a job ended without a result."""

    code: str
    detail: str


class RecordDocument(Document):
    """A signed usage record."""

    message: Message
    digest: str
    signature: str
    key_id: str


TERMINAL_STATES = frozenset({"completed", "failed", "cancelled", "expired"})


class JobDocument(Document):
    """One job; amounts are decimal strings of the token, None until it has ended."""

    id: str
    state: str
    model: str
    region: str
    supplier: str | None = None
    quote_id: str
    created_at: str
    completed_at: str | None = None
    answer: Answer | None = None
    usage: Usage | None = None
    charge: str | None = None
    held: str | None = None
    released: str | None = None
    attempts: int = 0
    failure: Failure | None = None
    record: RecordDocument | None = None

    @property
    def ended(self) -> bool:
        """Whether the job's state can no longer change."""
        return self.state in TERMINAL_STATES


class JobLine(Document):
    """One job in a list; the charge is None until it has ended."""

    id: str
    state: str
    model: str
    region: str
    created_at: str
    completed_at: str | None = None
    held: str
    charge: str | None = None


class JobPage(Document):
    """Some of a wallet's jobs, newest first; `next` is None on the last page."""

    jobs: list[JobLine]
    next: str | None = None
