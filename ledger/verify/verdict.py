"""What a check of one receipt found: a finding per step, the facts of its record, how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ledger.encoding import Address
from ledger.merkle import LogIndex
from ledger.money import Nano
from ledger.usage import Outcome
from ledger.verify.exits import Exit
from ledger.verify.places import Sealed
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


MEANINGS: Final[Mapping[Step, str]] = {
    Step.FORM: "one JSON file with exactly the members of a receipt, each in its form",
    Step.KEYS: "key rotations, each signed by the old and the new key, from a key of the policy on",
    Step.CHECKPOINT: "one checkpoint of the policy's log, signed by the one key for its size",
    Step.WITNESSES: "the policy's quorum has cosigned the checkpoint",
    Step.KEY_ENTRIES: "the key rotations are entries of that log",
    Step.RECORD: "the usage record is in its one text form; its digest in the policy's domain",
    Step.RECORD_SIGNATURE: "signed by a record key for the place of its batch in the log",
    Step.ARITHMETIC: "charge from tokens and rates, held = charge + released, number and link",
    Step.QUOTE: "the record fits this quote: payer, model, rates, token, request, bounds",
    Step.QUOTE_SIGNATURE: "the gateway signed the quote",
    Step.ACCEPTANCE: "the wallet accepted this quote; the charge is at most what it signed",
    Step.ACCEPTANCE_SIGNATURE: "the payer signed the acceptance; of a contract wallet, with --rpc",
    Step.STATEMENT: "the agent's statement is of this job, request and answer; no more was billed",
    Step.STATEMENT_SIGNATURE: "the agent's key signed the statement",
    Step.OPENING: "the texts in the receipt are those that quote and record commit to",
    Step.REQUEST: "the request given by --request is the one that was quoted",
    Step.BATCH: "the signed record is a leaf under the root in the batch's header",
    Step.HEADER: "the header's sums, times, number and key leave room for the record",
    Step.LOG: "the header is an entry of the log of the checkpoint",
    Step.CONSISTENCY: "the log continues the one remembered by --prev; no size has two roots",
    Step.ANCHOR: "the receipt anchor on chain has this size and root at a finalized block (--rpc)",
}
"""What holds when a step is `ok`."""


class Result(StrEnum):
    """How a step ended. Only `ok` speaks for the receipt; only `refused` against it."""

    OK = "ok"
    REFUSED = "refused"
    ABSENT = "absent"
    """There is nothing to check, or nobody asked for it."""
    WAITING = "waiting"
    """It can be checked once the record is in the log."""
    UNCHECKED = "unchecked"
    """It is there, but what is at hand cannot check it: only the chain can."""
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

    `sealed` is where it stands, in the log of `log_size`; `entries` are those of the log that its
    receipt proves, by index and leaf hash.
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
    sealed: Sealed | None
    log_size: int | None
    entries: tuple[tuple[LogIndex, bytes], ...]


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
