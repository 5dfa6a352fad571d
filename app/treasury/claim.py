"""Tokens that came by a plain transfer, and claims of those who sent them. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from app.kit.clock import unix_seconds
from app.treasury.errors import ClaimDeadline, ClaimTooSmall
from app.treasury.transaction import rest_after
from ledger.authorization import SuspenseClaim
from ledger.encoding import Address
from ledger.money import Nano

MOST_AHEAD: Final = timedelta(days=7)
"""A claim that could be shown later than this is asked for anew."""
RETRY_FIRST: Final = timedelta(seconds=10)
RETRY_MOST: Final = timedelta(minutes=10)


class TransferState(StrEnum):
    """How far a plain transfer is on its way to being a deposit."""

    NOT_FINAL = "not-final"
    UNCLAIMED = "unclaimed"
    REQUESTED = "requested"
    CREDITED = "credited"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTransfer:
    """A plain transfer as stored, with its claim if there is one."""

    id: UUID
    payer: Address
    """Who sent it."""
    amount: Nano
    transaction: bytes
    log_index: int
    block_number: int
    state: TransferState
    claim: UUID | None
    """The claim; as a word of 32 bytes the id of its credit on chain."""
    claim_digest: bytes | None

    def next_action(self) -> str:
        """Return what happens next, or what its sender can do, in a sentence."""
        return {
            TransferState.NOT_FINAL: f"wait until block {self.block_number} is final",
            TransferState.UNCLAIMED: "sign a SuspenseClaim and send it to /v1/suspense-claims",
            TransferState.REQUESTED: "wait until the credit is final on chain",
            TransferState.CREDITED: "none: it is part of the balance",
        }[self.state]


@dataclass(frozen=True, slots=True)
class SignedClaim:
    """A claim whose signature was checked."""

    message: SuspenseClaim
    digest: bytes
    signature: bytes


def check_claim(
    message: SuspenseClaim, transfer: PlainTransfer, *, minimum: Nano, now: datetime
) -> None:
    """Return if this transfer may be claimed by this message now.

    Raises:
        ClaimDeadline: it has passed, or is too far ahead.
        ClaimTooSmall: crediting it would cost more than it is worth.
    """
    seconds = unix_seconds(now)
    most = seconds + int(MOST_AHEAD.total_seconds())
    if not seconds < message.deadline <= most:
        raise ClaimDeadline(deadline=message.deadline, least=seconds + 1, most=most)
    if transfer.amount < minimum:
        raise ClaimTooSmall(minimum=minimum)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToCredit:
    """A claim without a transaction that is open or done, and what became of earlier ones."""

    claim: UUID
    payer: Address
    amount: int
    """Base units."""
    reverted: int
    reverted_at: datetime | None

    def due(self, now: datetime) -> bool:
        """Return whether a transaction may be begun: not right after one reverted."""
        if self.reverted_at is None:
            return True
        return now >= self.reverted_at + rest_after(
            self.reverted, first=RETRY_FIRST, most=RETRY_MOST
        )
