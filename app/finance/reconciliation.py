"""What a reconciliation says. Values; `reconcile` reads them from the database."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.finance.interval import Interval
from ledger.encoding import Address
from ledger.money import Nano


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Two books that say different things of `reference`, since `at`."""

    reference: str
    expected: str
    found: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Match:
    """A claim about two books, with the first items that contradict it and how many there are."""

    name: str
    claim: str
    items: tuple[Unmatched, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Delayed:
    """Something that still has a step to go, since when; `is_late` when that is too long."""

    reference: str
    since: datetime
    is_late: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits for the same step, oldest first: the first items, and how many, how many late."""

    name: str
    claim: str
    items: tuple[Delayed, ...]
    count: int
    late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where one token's money is, in nano.

    `treasury` is what the contract holds by our books and `made_up` what a development invented:
    together all that came in. The rest says whose it is or where it is on its way; `receivable` is
    what wallets owe, and counts against.
    """

    asset: Address
    treasury: Nano
    made_up: Nano
    available: Nano
    held: Nano
    suppliers: Nano
    fees: Nano
    withdrawals: Nano
    exits: Nano
    payouts: Nano
    suspense: Nano
    receivable: Nano

    @property
    def difference(self) -> Nano:
        """What is there beyond what came in; 0 when the books add up."""
        mine = self.available + self.held + self.suppliers + self.fees + self.suspense
        on_its_way = self.withdrawals + self.exits + self.payouts
        return Nano(mine + on_its_way - self.receivable - self.treasury - self.made_up)


@dataclass(frozen=True, slots=True)
class ChainCompared:
    """The chain against the books, if there is one and it answers; else why it was not compared.

    `problem` is what does not agree or could not be compared; None when all agrees.
    """

    state: str
    problem: str | None = None


NO_CHAIN: Final = ChainCompared("no chain connected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Ledger, records and log compared at `as_of`; matches for an interval, the rest as it is."""

    as_of: datetime
    interval: Interval | None
    late_after: timedelta
    matches: tuple[Match, ...]
    queues: tuple[Queue, ...]
    positions: tuple[Position, ...]
    chain: ChainCompared = NO_CHAIN

    @property
    def unmatched(self) -> int:
        """How many items do not match or are late, tokens do not add up, and 1 for the chain."""
        contradictions = sum(match.count for match in self.matches)
        late = sum(queue.late for queue in self.queues)
        sums = sum(1 for each in self.positions if each.difference)
        return contradictions + late + sums + (self.chain.problem is not None)
