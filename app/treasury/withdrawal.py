"""A withdrawal: what its wallet signed, and how far it has come. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from app.treasury.errors import (
    WithdrawalDeadline,
    WithdrawalFeeTooLow,
    WithdrawalToken,
    WithdrawalTooSmall,
)
from app.treasury.fee import nano
from app.treasury.transaction import TransactionState, rest_after
from ledger.authorization import Withdrawal
from ledger.encoding import Address
from ledger.errors import BadAmount
from ledger.money import MAX_NANO, Nano

LEAST_AHEAD: Final = timedelta(minutes=10)
"""A nearer deadline may pass before the transaction is mined."""
MOST_AHEAD: Final = timedelta(days=7)
"""A farther one would keep the money of a withdrawal that cannot be paid for too long."""
SKEW: Final = timedelta(seconds=30)
LAST_START: Final = timedelta(seconds=30)
"""No transaction is begun this close to the deadline: it would revert and cost gas."""
RETRY_FIRST: Final = timedelta(seconds=10)
RETRY_MOST: Final = timedelta(minutes=10)


class WithdrawalState(StrEnum):
    """`paid` when the event is final; `failed` on proof that it can never be paid."""

    PENDING = "pending"
    PAID = "paid"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalTerms:
    """What a withdrawal must keep to here."""

    token: Address
    minimum: Nano


def check_withdrawal(
    message: Withdrawal, *, fee: int, terms: WithdrawalTerms, now: datetime
) -> None:
    """Return if a withdrawal may be asked for now; `fee` in base units.

    Raises:
        WithdrawalToken, WithdrawalDeadline, WithdrawalTooSmall, WithdrawalFeeTooLow
        BadAmount: more than the ledger can hold.
    """
    if message.token != terms.token:
        raise WithdrawalToken(token=terms.token)
    seconds = int(now.timestamp())
    least = seconds + int((LEAST_AHEAD - SKEW).total_seconds())
    most = seconds + int((MOST_AHEAD + SKEW).total_seconds())
    if not least <= message.deadline <= most:
        raise WithdrawalDeadline(deadline=message.deadline, least=least, most=most)
    if nano(message.amount) > MAX_NANO:
        raise BadAmount(str(message.amount), "more base units than the ledger can hold")
    if fee > message.max_fee:
        raise WithdrawalFeeTooLow(fee=fee, max_fee=message.max_fee)
    minimum = max(terms.minimum, nano(fee + 1))
    if nano(message.amount) < minimum:
        raise WithdrawalTooSmall(minimum=Nano(minimum))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """One transaction that relays a withdrawal."""

    state: TransactionState
    hash: bytes | None
    """Of the mined attempt, else of the latest; None before it is signed."""
    block_number: int | None
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWithdrawal:
    """A withdrawal as stored, with its transactions, oldest first."""

    id: UUID
    payer: Address
    digest: bytes
    """What the contract calls its id."""
    amount: Nano
    fee: Nano
    deadline: datetime
    message: bytes
    signature: bytes
    state: WithdrawalState
    requested_at: datetime
    ended_at: datetime | None
    reason: str | None
    relays: Sequence[Relay] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToRelay:
    """A pending withdrawal without an open transaction, and what became of earlier ones."""

    withdrawal: StoredWithdrawal
    reverted: int
    reverted_at: datetime | None

    def due(self, now: datetime) -> bool:
        """Return whether a transaction may be begun: in time, and not right after a revert."""
        if now > self.withdrawal.deadline - LAST_START:
            return False
        if self.reverted_at is None:
            return True
        return now >= self.reverted_at + rest_after(
            self.reverted, first=RETRY_FIRST, most=RETRY_MOST
        )


def next_action(stored: StoredWithdrawal, *, final_number: int | None) -> str:
    """Return what happens next with a withdrawal, or what its wallet can do, in a sentence."""
    match stored.state:
        case WithdrawalState.PAID:
            return "none: the tokens are at the wallet"
        case WithdrawalState.FAILED:
            return "the amount is available again: sign a new withdrawal to try again"
        case WithdrawalState.PENDING:
            return _wait(stored.relays[-1] if stored.relays else None, final_number)


def _wait(relay: Relay | None, final_number: int | None) -> str:
    if relay is None:
        return "wait until it is sent"
    if relay.state is TransactionState.MINED and relay.block_number is not None:
        more = "" if final_number is None else f", {relay.block_number - final_number} more to go"
        return f"wait until block {relay.block_number} is final{more}"
    if relay.state is TransactionState.QUEUED and relay.last_error:
        return (
            f"it cannot be paid now ({relay.last_error}) and is tried again until its deadline;"
            " after that the amount becomes available again"
        )
    return {
        TransactionState.SIGNED: "wait until the transaction is mined",
        TransactionState.DONE: "wait until the payment's event is booked",
    }.get(relay.state, "wait until it is sent")
