"""Whether chain and books agree, and what has waited too long. Pure.

The comparison is made at one final block, by number and hash: the last one up to which every event
is stored. Two identities must hold there to the unit; everything else is a figure with a limit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from app.chain.blocks import BlockId
from ledger.encoding import Address, checksum_address
from ledger.money import NANO_PER_BASE_UNIT, Nano, format_amount


class Kind(StrEnum):
    """What can be pending, each with its own limit."""

    DEPOSIT = "deposit"
    EVENT = "event"
    WITHDRAWAL = "withdrawal"
    TRANSACTION = "transaction"
    EXIT = "exit"
    CLAIM = "claim"
    PAYOUT = "payout"
    COMMIT = "commit"
    ANCHOR = "anchor"
    SCAN = "scan"


LIMITS: Final[Mapping[Kind, timedelta]] = {
    Kind.DEPOSIT: timedelta(minutes=60),
    Kind.EVENT: timedelta(minutes=60),
    Kind.WITHDRAWAL: timedelta(hours=2),
    Kind.TRANSACTION: timedelta(minutes=60),
    Kind.EXIT: timedelta(hours=2),
    Kind.CLAIM: timedelta(hours=2),
    Kind.PAYOUT: timedelta(hours=26),
    Kind.COMMIT: timedelta(minutes=60),
    Kind.ANCHOR: timedelta(minutes=60),
    Kind.SCAN: timedelta(minutes=30),
}
"""How old the oldest pending item of a kind may be. A payout may wait for the next day's limit;
commitments and anchors have their interval besides; an exit counts from the end of its window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What waits of one kind, and since when the oldest does; None when nothing waits."""

    kind: Kind
    count: int
    since: datetime | None

    def age(self, now: datetime) -> timedelta:
        """Return how long the oldest has waited, zero for none."""
        return max(now - self.since, timedelta(0)) if self.since else timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFigures:
    """What the contracts say in the state after one block, in base units."""

    block: BlockId
    tokens: int
    """What the token's contract says that the treasury holds."""
    liability: int
    earned: int
    unaccounted: int
    events: int
    paused: bool

    @property
    def gap(self) -> int:
        """Tokens less what the treasury says they are; 0 when it holds what it owes."""
        return self.tokens - self.liability - self.earned - self.unaccounted


@dataclass(frozen=True, slots=True, kw_only=True)
class BookFigures:
    """What the books say, with the events at both sides of the block; base units, nano so named.

    `early` are effects on the tokens that are booked and lie after the block, `late` such that lie
    up to it and are not booked yet.
    """

    tokens_nano: Nano
    """What came in less what went out, by transfers."""
    early: int
    late: int
    events: int
    """Events of the treasury up to the block, as stored."""
    owed_nano: Nano
    suspense_nano: Nano
    commit_due: int
    """Spending that the chain has not been told of."""
    refund_due: int
    pending: tuple[Pending, ...]

    @property
    def tokens_at_block_nano(self) -> int:
        """What the chain must hold at the block by our books, in nano."""
        return self.tokens_nano + (self.late - self.early) * NANO_PER_BASE_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderState:
    """One sending key: its nonces, and its gas money in wei."""

    address: Address
    open: int
    """Transactions that are queued, signed or mined and not final."""
    next_nonce: int | None
    """The next one by what we have signed, None when we never did."""
    chain_nonce: int
    """The next one by the latest block."""
    balance_wei: int
    needed_wei: int

    @property
    def nonce_gap(self) -> int:
        """Ours less the chain's: how many wait to be mined; below 0 another used the key."""
        return 0 if self.next_nonce is None else self.next_nonce - self.chain_nonce


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that a person must look at; `name` is the Prometheus alert's and the how-to's."""

    name: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreasuryStatus:
    """Chain and books side by side, as of `as_of` by the database clock.

    `head` is the final block that a node names now; `chain` is read at the scanned one. Without a
    scanned block there is nothing to compare yet.
    """

    as_of: datetime
    chain_id: int
    head: BlockId
    chain: ChainFigures | None
    books: BookFigures
    senders: Sequence[SenderState]
    intervals: Mapping[Kind, timedelta]
    """What commitments and anchors have besides their limit."""

    @property
    def tokens_differ_nano(self) -> int:
        """Tokens on chain less tokens by our books at the block, in nano; 0 when they agree."""
        if self.chain is None:
            return 0
        return self.chain.tokens * NANO_PER_BASE_UNIT - self.books.tokens_at_block_nano

    @property
    def events_differ(self) -> int:
        """The contract's count of its events less ours."""
        return 0 if self.chain is None else self.chain.events - self.books.events

    @property
    def money_agrees(self) -> bool:
        """Whether the tokens are what the contract owes and what our books say."""
        return not ((self.chain.gap if self.chain else 0) or self.tokens_differ_nano)

    @property
    def holds(self) -> bool:
        """Whether the identities hold."""
        return self.money_agrees and not self.events_differ

    def alarms(self) -> tuple[Alarm, ...]:
        """Return what needs a person, the worst first."""
        found = [*self.broken(), *self._keys(), *self._waiting()]
        if self.chain is not None and self.chain.paused:
            found.append(Alarm(name="TreasuryPaused", detail="only exits work"))
        if self.books.owed_nano:
            owed = format_amount(self.books.owed_nano)
            found.append(Alarm(name="TreasuryReceivable", detail=f"wallets owe {owed}"))
        return tuple(found)

    def broken(self) -> Iterator[Alarm]:
        """Yield the identities that do not hold."""
        if self.chain is not None and self.chain.gap:
            detail = f"tokens less liability, earned and unaccounted: {self.chain.gap} base units"
            yield Alarm(name="TreasuryInsolvent", detail=detail)
        if self.tokens_differ_nano:
            detail = f"the chain less the books: {format_amount(Nano(self.tokens_differ_nano))}"
            yield Alarm(name="TreasuryBooksDiffer", detail=detail)
        if self.events_differ:
            detail = f"the contract counts {self.events_differ} events more than are stored"
            yield Alarm(name="TreasuryEventsMissing", detail=detail)

    def _keys(self) -> Iterator[Alarm]:
        for sender in self.senders:
            who = checksum_address(sender.address)
            if sender.nonce_gap < 0:
                detail = f"{who}: the chain is {-sender.nonce_gap} nonces ahead of what we signed"
                yield Alarm(name="TreasuryNonceTaken", detail=detail)
            if sender.balance_wei < sender.needed_wei:
                detail = f"{who}: {sender.balance_wei} wei, {sender.needed_wei} needed"
                yield Alarm(name="TreasuryGasLow", detail=detail)

    def _waiting(self) -> Iterator[Alarm]:
        for pending in self.books.pending:
            limit = LIMITS[pending.kind] + self.intervals.get(pending.kind, timedelta(0))
            age = pending.age(self.as_of)
            if age > limit:
                detail = f"{pending.kind}: {pending.count} waiting, the oldest for {age}"
                yield Alarm(name="TreasuryItemOld", detail=detail)
