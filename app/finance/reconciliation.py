"""What a reconciliation says. Values; `reconcile` reads them from the database."""

from dataclasses import dataclass
from datetime import datetime, timedelta

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
    """Where one token's money is, in nano; deposits are what came in."""

    asset: Address
    deposits: Nano
    available: Nano
    held: Nano
    suppliers: Nano
    fees: Nano
    others: Nano
    """Treasury, clearing of withdrawals, suspense."""

    @property
    def difference(self) -> Nano:
        """What is there beyond what came in; 0 when the books add up."""
        return Nano(
            self.available + self.held + self.suppliers + self.fees + self.others - self.deposits
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Ledger, records and log compared at `as_of`; matches for an interval, the rest as it is."""

    as_of: datetime
    interval: Interval | None
    late_after: timedelta
    matches: tuple[Match, ...]
    queues: tuple[Queue, ...]
    positions: tuple[Position, ...]

    @property
    def unmatched(self) -> int:
        """How many items do not match, are late, or how many tokens do not add up."""
        contradictions = sum(match.count for match in self.matches)
        late = sum(queue.late for queue in self.queues)
        return contradictions + late + sum(1 for each in self.positions if each.difference)
