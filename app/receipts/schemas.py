"""Wire forms of receipts and the log, shared with the client."""

from pydantic import BaseModel, ConfigDict, Field


class Wire(BaseModel):
    """A frozen wire form."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ReceiptLineOut(Wire):
    """One record of a wallet's history."""

    record_id: str = Field(description="`job_` and a UUID; a correction has an id of its own.")
    payer_seq: int = Field(description="The record's number in the wallet's history, from 1.")
    previous_record: str | None = Field(description="The record before it, null for the first.")
    outcome: str = Field(description="completed, failed, cancelled or correction.")
    corrects_record: str | None = Field(description="Of a correction, the record it corrects.")
    charge: str
    released: str
    completed_at: str
    include_by: str = Field(description="By when the record is due in the log.")
    batch: int | None = Field(description="The receipt batch, null while it is not sealed.")
    batch_index: int | None = Field(description="The record's place in that batch.")
    log_index: int | None = Field(description="Where the log holds the batch's header.")


class ReceiptPageOut(Wire):
    """A wallet's records in their order; `next` is null on the last page."""

    receipts: list[ReceiptLineOut]
    next: int | None = Field(description="`after` of the next page.")


class ConsistencyOut(Wire):
    """That the log of one size is the start of that of another (RFC 9162, 2.1.4)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_size: str = Field(alias="from")
    to_size: str = Field(alias="to")
    proof: list[str] = Field(description="Hashes as `0x` and hex.")


class BatchProofOut(Wire):
    """That a leaf stands in a receipt batch; what it stands for is its payer's to show."""

    batch: str
    index: str
    leaf_hash: str
    proof: list[str]


class LogKeyOut(Wire):
    """A key and where it counts: log sizes (checkpoint) or log indexes (record), half open."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    role: str = Field(description="checkpoint or record.")
    key: str = Field(description="A verifier key (C2SP signed-note), or an address.")
    from_place: str = Field(alias="from")
    until: str | None


class LogKeysOut(Wire):
    """Every key that ever counted in a log, as of a size."""

    origin: str
    size: str
    keys: list[LogKeyOut]
