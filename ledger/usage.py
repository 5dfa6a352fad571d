"""The usage record: what one finished job used, was charged and gave back."""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from ledger.encoding import Address, Domain
from ledger.errors import MalformedTypedData, RecordInconsistent
from ledger.money import RATE_UNIT, Nano
from ledger.typed_data import StructType, TypedMessage

DOMAIN_NAME: Final = "OFFPEAK UsageRecord"
DOMAIN_VERSION: Final = "1"
RECORD_VERSION: Final = 1

NO_RECORD: Final = bytes(32)
"""`prev_payer_record` of a wallet's first record; `corrects_record` of all but a correction."""


class Outcome(IntEnum):
    """How a job ended, as the record's `outcome` says it."""

    COMPLETED = 1
    """Billed: a whole result was delivered or is retrievable."""
    FAILED = 2
    """Unbilled: the whole hold is released."""
    CANCELLED = 3
    """The buyer stopped it: input and delivered output are billed, or nothing."""
    CORRECTION = 4
    """A later change of a record: held is the original charge, released the refund."""


def usage_record_domain(*, chain_id: int, receipt_anchor: Address) -> Domain:
    """The domain of usage records: the receipt anchor contract on its chain."""
    return Domain(DOMAIN_NAME, DOMAIN_VERSION, chain_id, receipt_anchor)


@dataclass(frozen=True, slots=True)
class UsageRecord(TypedMessage):
    """A usage record as the gateway's record key signs it.

    Ids are UUIDs by `ledger.encoding.uuid_bytes32`; `record_id` = job = hold. Cached tokens are
    part of input, reasoning tokens part of output. Rates are nano per 10^6 tokens, times unix
    seconds; by `include_by` the record is due in the receipt log.
    """

    TYPE: ClassVar[StructType] = StructType(
        "UsageRecord(uint16 version,bytes32 recordId,bytes32 quoteDigest,bytes32 acceptDigest,"
        "bytes32 supplierStatement,address payer,uint64 payerSeq,bytes32 prevPayerRecord,"
        "bytes32 modelRevision,uint64 inputTokens,uint64 cachedInputTokens,uint64 outputTokens,"
        "uint64 reasoningTokens,uint128 inputRateNano,uint128 outputRateNano,"
        "uint128 perRequestNano,address asset,uint256 heldNano,uint256 chargeNano,"
        "uint256 releasedNano,uint8 outcome,bytes32 correctsRecord,bytes32 requestCommit,"
        "bytes32 responseCommit,uint64 completedAt,uint64 includeBy,bytes32 salt)"
    )

    version: int
    record_id: bytes
    quote_digest: bytes
    accept_digest: bytes
    supplier_statement: bytes
    payer: Address
    payer_seq: int
    prev_payer_record: bytes
    model_revision: bytes
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    input_rate_nano: Nano
    output_rate_nano: Nano
    per_request_nano: Nano
    asset: Address
    held_nano: Nano
    charge_nano: Nano
    released_nano: Nano
    outcome: Outcome
    corrects_record: bytes
    request_commit: bytes
    response_commit: bytes
    completed_at: int
    include_by: int
    salt: bytes

    def __post_init__(self) -> None:
        """Name the outcome.

        Raises:
            MalformedTypedData: `outcome` is none of the four.
        """
        try:
            outcome = Outcome(self.outcome)
        except ValueError:
            raise MalformedTypedData("outcome", "not one of 1, 2, 3, 4") from None
        object.__setattr__(self, "outcome", outcome)

    def metered_charge(self) -> Nano:
        """What the record's tokens cost at its rates: rounded down, never more than the hold."""
        parts = (
            self.per_request_nano * RATE_UNIT
            + self.input_tokens * self.input_rate_nano
            + self.output_tokens * self.output_rate_nano
        )
        return Nano(min(parts // RATE_UNIT, self.held_nano))

    def check(self) -> None:
        """Recompute everything the record says about itself.

        A completed job is charged what its tokens cost; a failed one nothing; a cancelled one
        what its tokens cost, or nothing; a correction anything up to the original charge.

        Raises:
            RecordInconsistent: the first rule that fails, with both figures.
        """
        held, charge, released = self.held_nano, self.charge_nano, self.released_nano
        _at_most("charge within hold", charge, held)
        _equal("held = charge + released", held, charge + released)
        _at_most("cached within input", self.cached_input_tokens, self.input_tokens)
        _at_most("reasoning within output", self.reasoning_tokens, self.output_tokens)
        corrects = self.corrects_record != NO_RECORD
        _equal("only a correction corrects", self.outcome is Outcome.CORRECTION, corrects)
        if self.outcome is Outcome.FAILED:
            _equal("a failed job is free", 0, charge)
        elif self.outcome is Outcome.COMPLETED or (self.outcome is Outcome.CANCELLED and charge):
            _equal("charge = tokens x rates", self.metered_charge(), charge)


def _equal(rule: str, expected: int, found: int) -> None:
    if expected != found:
        raise RecordInconsistent(rule, expected=expected, found=found)


def _at_most(rule: str, found: int, limit: int) -> None:
    if found > limit:
        raise RecordInconsistent(rule, expected=limit, found=found)
