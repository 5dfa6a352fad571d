"""A transaction of ours on its way to the chain, and what is to be done about it next.

Absence is never a negative: without a receipt a transaction may still be anything. It is sent
again as it is, or replaced at the same nonce, and given up only when a receipt says how it ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from app.chain.blocks import BlockId
from app.chain.fees import Fees, replacement
from ledger.encoding import Address


class TransactionState(StrEnum):
    """Where a transaction stands; from `signed` on it owns its nonce for good."""

    QUEUED = "queued"
    SIGNED = "signed"
    MINED = "mined"
    DONE = "done"
    REVERTED = "reverted"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class Purpose(StrEnum):
    """What a transaction is for."""

    WITHDRAWAL = "withdrawal"
    PAYOUT = "payout"
    COMMIT = "commit"
    REFUND = "refund"
    CREDIT = "credit"
    ANCHOR = "anchor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One signed form of a transaction; all attempts share its nonce, so at most one is mined."""

    hash: bytes
    raw: bytes
    fees: Fees
    created_at: datetime
    broadcast_at: datetime | None
    """When a node took it last; None when nobody knows that one did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTransaction:
    """A stored transaction with its attempts, oldest first."""

    id: UUID
    sender: Address
    purpose: Purpose
    subject: UUID
    to: Address
    data: bytes
    state: TransactionState
    nonce: int | None
    gas: int | None
    attempts: Sequence[Attempt]
    mined: BlockId | None
    mined_hash: bytes | None
    """Which attempt was mined."""
    tries: int
    """How often it was put off while queued, and why last: `last_error`."""
    last_error: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Inclusion:
    """A receipt that stands in the chain: the header at its number has its block's hash."""

    attempt: bytes
    block: BlockId
    succeeded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the chain shows of one transaction."""

    inclusion: Inclusion | None
    """None says nothing: a node may have lost the receipt or never have had it."""
    replaced_block: bool
    """Whether a header at the height where it was mined is shown with another hash."""
    nonce_latest: int
    """How many transactions of the sender are in the chain."""
    nonce_final: int
    """How many of them are in finalized blocks."""
    final_number: int
    """The finalized block's number."""
    fees: Fees
    """What a new transaction would offer now."""


def rest_after(times: int, *, first: timedelta, most: timedelta) -> timedelta:
    """Return how long something rests that has failed before: `first`, doubled each time."""
    return min(first * (1 << min(times, 20)), most)


@dataclass(frozen=True, slots=True)
class Rules:
    """How patient and how generous the sender is."""

    replace_after: timedelta
    rebroadcast_after: timedelta
    fee_cap: int
    """The most per unit of gas, in wei."""
    retry_first: timedelta = timedelta(seconds=2)
    """How long a queued one that would revert is left alone; doubled with each try."""
    retry_most: timedelta = timedelta(minutes=1)

    gas_retry: timedelta = timedelta(seconds=5)
    """How long a queued one rests when the key is out of gas money."""

    def retry_after(self, tries: int) -> timedelta:
        """Return how long a queued transaction rests after so many tries."""
        return rest_after(tries, first=self.retry_first, most=self.retry_most)


@dataclass(frozen=True, slots=True)
class Mine:
    """Note where it was mined."""

    inclusion: Inclusion


@dataclass(frozen=True, slots=True)
class Unmine:
    """The block it was mined in is no longer in the chain."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Its block is final."""

    succeeded: bool


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Send a stored attempt, again or for the first time."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Replace:
    """Sign another attempt at the same nonce."""

    fees: Fees


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now."""


@dataclass(frozen=True, slots=True)
class NonceTaken:
    """Its nonce is used for good and no attempt has a receipt: a person must look."""


Step = Mine | Unmine | Finish | Broadcast | Replace | Wait | NonceTaken


def next_step(tx: StoredTransaction, sight: Sight, *, rules: Rules, now: datetime) -> Step:
    """Return what is to be done about a transaction that owns a nonce.

    Never gives it up: a lying or lagging node can delay the end but not make up another.
    """
    assert tx.nonce is not None
    assert tx.state in {TransactionState.SIGNED, TransactionState.MINED}
    if sight.inclusion is not None:
        return _included(tx, sight, sight.inclusion)
    if tx.state is TransactionState.MINED:
        return Unmine() if sight.replaced_block else Wait()
    if sight.nonce_final > tx.nonce:
        return NonceTaken()
    if sight.nonce_latest > tx.nonce:
        return Wait()  # mined by now; its receipt will show which attempt
    return _waiting(tx, sight, rules=rules, now=now)


def _included(tx: StoredTransaction, sight: Sight, inclusion: Inclusion) -> Step:
    if tx.state is TransactionState.SIGNED:
        return Mine(inclusion)
    if (tx.mined, tx.mined_hash) != (inclusion.block, inclusion.attempt):
        return Unmine()
    return Finish(inclusion.succeeded) if inclusion.block.number <= sight.final_number else Wait()


def _waiting(tx: StoredTransaction, sight: Sight, *, rules: Rules, now: datetime) -> Step:
    last = tx.attempts[-1]
    if last.broadcast_at is None:
        return Broadcast(last)
    if sight.nonce_latest == tx.nonce and now - last.created_at >= rules.replace_after:
        fees = replacement(last.fees, sight.fees, cap=rules.fee_cap)
        if fees is not None:
            return Replace(fees)
    return Broadcast(last) if now - last.broadcast_at >= rules.rebroadcast_after else Wait()


def next_nonce(stored: int | None, on_chain: int) -> int:
    """Return the nonce of a new transaction: after every one stored, and none that is used.

    Args:
        stored: The highest that a transaction of ours owns.
        on_chain: How many transactions of the sender the chain holds.
    """
    return on_chain if stored is None else max(stored + 1, on_chain)


def missing_nonces(owned: Sequence[int], on_chain: int) -> range:
    """Return nonces below our open ones that nobody owns: everything after them hangs.

    Args:
        owned: Nonces of open transactions, in order.
        on_chain: How many transactions of the sender the chain holds.
    """
    waiting = [nonce for nonce in owned if nonce >= on_chain]
    return range(on_chain, waiting[0]) if waiting else range(0)


def gas_shortfall(*, balance: int, promised: int, gas: int, fees: Fees) -> int:
    """Return how much native coin is missing for one more transaction, in wei; 0 when none is.

    Args:
        balance: Of the sender at the latest block.
        promised: What open transactions may still cost.
        gas: Limit of the new one.
        fees: Of the new one.
    """
    return max(promised + gas * fees.max_fee - balance, 0)


def promised_gas(open_transactions: Sequence[StoredTransaction], on_chain: int) -> int:
    """Return the most that transactions may cost which are signed and not in the chain, in wei."""
    total = 0
    for tx in open_transactions:
        if tx.nonce is not None and tx.nonce >= on_chain and tx.gas is not None and tx.attempts:
            total += tx.gas * max(each.fees.max_fee for each in tx.attempts)
    return total
