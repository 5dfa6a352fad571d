"""What a check of one receipt found: a finding per step, the facts of its record, how it ended."""

from dataclasses import dataclass
from enum import StrEnum

from ledger.encoding import Address
from ledger.merkle import LogIndex
from ledger.money import Nano
from ledger.usage import Outcome
from ledger.verify.exits import Exit
from ledger.verify.trust import Trusted


class Step(StrEnum):
    """What is checked, in this order."""

    FORM = "form"
    KEYS = "keys"
    CHECKPOINT = "checkpoint"
    WITNESSES = "witnesses"
    KEY_ENTRIES = "key-entries"
    RECORD = "record"
    RECORD_SIGNATURE = "record-signature"
    ARITHMETIC = "arithmetic"
    QUOTE = "quote"
    QUOTE_SIGNATURE = "quote-signature"
    ACCEPTANCE = "acceptance"
    ACCEPTANCE_SIGNATURE = "acceptance-signature"
    STATEMENT = "statement"
    STATEMENT_SIGNATURE = "statement-signature"
    OPENING = "opening"
    REQUEST = "request"
    BATCH = "batch"
    HEADER = "header"
    LOG = "log"
    CONSISTENCY = "consistency"
    ANCHOR = "anchor"


class Result(StrEnum):
    """How a step ended. Only `ok` speaks for the receipt; only `refused` against it."""

    OK = "ok"
    REFUSED = "refused"
    ABSENT = "absent"
    """There is nothing to check, or nobody asked for it."""
    WAITING = "waiting"
    """It can be checked once the record is in the log."""
    UNUSABLE = "unusable"
    """The reader has to give something else, or more."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One step's end, in words."""

    step: Step
    result: Result
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a record says that was not refused; amounts are nano, times unix seconds.

    `batch` is its batch's number, `log_index` its header's place in the log of `log_size`.
    """

    record_id: bytes
    digest: bytes
    payer: Address
    payer_seq: int
    prev_payer_record: bytes
    outcome: Outcome
    corrects_record: bytes
    quote_digest: bytes
    accept_digest: bytes
    asset: Address
    held: Nano
    charge: Nano
    released: Nano
    input_tokens: int
    output_tokens: int
    model: str
    completed_at: int
    include_by: int
    batch: int | None
    log_index: LogIndex | None
    log_size: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings up to the first that is refused; facts only where none is."""

    exit: Exit
    findings: tuple[Finding, ...]
    facts: Facts | None
    trusted: Trusted | None

    @property
    def refused(self) -> Finding | None:
        """The step that ended the check, if one did."""
        last = self.findings[-1]
        return last if last.result in {Result.REFUSED, Result.UNUSABLE} else None
