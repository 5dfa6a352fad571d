"""What a watcher decides: whom it believes, what it reads next, what may be booked, what is whole.

Pure. Blocks come in three depths, latest < safe < finalized. A node that lags or hides is met by
three rules: what is missing proves nothing, what is final is compared with the contract's own
count, and nothing that has been passed is gone back to.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.chain.blocks import Block
from app.treasury.events import EventKind, LogPlace, SeenEvent
from app.treasury.fee import nano
from app.wallets.balance import depths
from ledger.encoding import Address
from ledger.money import MAX_NANO, Nano

STALE_SECONDS: Final = 90
"""A node whose latest block is older than another's by more than this is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHeads:
    """The three heads that one endpoint names."""

    latest: Block
    safe: Block
    finalized: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Which endpoint is read in this round, and how deep the chain is by all that are fresh."""

    reader: int
    """The endpoint's place among those that answered."""
    latest: Block
    safe: Block
    finalized: Block


def choose(seen: Sequence[EndpointHeads], *, turn: int, now: int) -> Outlook:
    """Return the outlook of a round; `seen` has one entry per endpoint that answered, at least one.

    Endpoints that lag are passed over. Of the others the least depth counts: one that calls a
    young block final must not make us believe it. Turns pass the reading on from one to the next.
    A block from after `now`, unix seconds, makes nobody else look late.
    """
    newest = min(max(heads.latest.timestamp for heads in seen), now)
    fresh = [
        number
        for number, heads in enumerate(seen)
        if heads.latest.timestamp >= newest - STALE_SECONDS
    ]
    reader = fresh[turn % len(fresh)]
    return Outlook(
        reader=reader,
        latest=seen[reader].latest,
        safe=min((seen[one].safe for one in fresh), key=_number),
        finalized=min((seen[one].finalized for one in fresh), key=_number),
    )


def _number(block: Block) -> int:
    return block.number


def ranges(after: int, last: int, *, size: int, limit: int) -> list[tuple[int, int]]:
    """Return the next ranges of blocks to read, in order, without gaps: at most `limit`.

    They cover after + 1 .. last as far as they go, each of at most `size` blocks; none when
    `last` is not above `after`.
    """
    firsts = range(after + 1, last + 1, size)[:limit]
    return [(first, min(first + size - 1, last)) for first in firsts]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event as stored; `amount` in base units."""

    id: UUID
    place: LogPlace
    kind: EventKind
    payer: str
    amount: int
    is_booked: bool = False

    @property
    def is_bookable(self) -> bool:
        """Whether the ledger can hold its amount."""
        return nano(self.amount) <= MAX_NANO


def rewritten(stored: Sequence[StoredEvent], shown: Sequence[SeenEvent]) -> list[StoredEvent]:
    """Return stored events, not booked yet, that another endpoint tells otherwise than the first.

    One of the two lies. Nothing follows from the event yet, so what was shown last takes its place.
    """
    told = {event.place: (event.kind, event.payer or "", event.amount) for event in shown}
    return [
        event
        for event in stored
        if not event.is_booked
        and told.get(event.place) not in {None, (event.kind, event.payer, event.amount)}
    ]


def suspects(stored: Sequence[StoredEvent], shown: Collection[LogPlace]) -> list[StoredEvent]:
    """Return stored events that a reading of their blocks did not show, newest first.

    That proves nothing: their blocks must be asked for, one by one.
    """
    missing = [event for event in stored if event.place not in shown]
    return sorted(missing, key=lambda event: event.place, reverse=True)


def due_at_safe(
    waiting: Sequence[StoredEvent],
    *,
    finalized: int,
    credited: Mapping[Address, Nano],
    safe_limit: Nano,
) -> list[StoredEvent]:
    """Return the deposits that are credited before they are final, in the chain's order.

    Args:
        waiting: Events whose blocks are safe, in the chain's order, of any kind.
        finalized: The last final block.
        credited: What each wallet was credited that is not final, in nano.
        safe_limit: How much of a wallet may be credited before it is final.
    """
    of_wallet: dict[Address, list[StoredEvent]] = defaultdict(list)
    for event in waiting:
        is_young = event.place.block_number > finalized
        if event.kind is EventKind.DEPOSITED and is_young and event.is_bookable:
            of_wallet[Address(event.payer)].append(event)
    found = []
    for payer, deposits in of_wallet.items():
        amounts = [nano(event.amount) for event in deposits]
        not_final = credited.get(payer, Nano(0))
        waits = depths(amounts, not_final=not_final, safe_limit=safe_limit)
        found += [event for event, depth in zip(deposits, waits, strict=True) if depth == "safe"]
    return sorted(found, key=lambda event: event.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSums:
    """What the stored events of some blocks add up to; amounts in base units."""

    counted: int
    """Events that the treasury's `eventCount` counts."""
    unclaimed: int
    """Plain transfers less what was credited of them."""
    anchored: int
    """The largest published size of the receipt log, 0 for none."""
    broken_links: int
    """Anchors whose previous one is not stored."""

    def __add__(self, later: "StoredSums") -> "StoredSums":
        """Return the sums of these blocks and of those that follow them."""
        return StoredSums(
            counted=self.counted + later.counted,
            unclaimed=self.unclaimed + later.unclaimed,
            anchored=max(self.anchored, later.anchored),
            broken_links=self.broken_links + later.broken_links,
        )


NOTHING_STORED: Final = StoredSums(counted=0, unclaimed=0, anchored=0, broken_links=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSums:
    """What the contracts say in the state after that block; amounts in base units."""

    counted: int
    tokens: int
    liability: int
    earned: int
    anchored: int


def gaps(stored: StoredSums, said: ChainSums) -> list[str]:
    """Return what shows that events are missing, or too many, in words; empty: all are stored."""
    found = []
    if stored.counted != said.counted:
        found.append(f"{stored.counted} events are stored, the treasury counts {said.counted}")
    tokens = said.liability + said.earned + stored.unclaimed
    if tokens != said.tokens:
        found.append(f"the stored events make {tokens} base units, the treasury has {said.tokens}")
    if stored.anchored != said.anchored or stored.broken_links:
        links = f", {stored.broken_links} anchors before others are missing"
        found.append(
            f"the last stored anchor is of size {stored.anchored}, the contract's"
            f" {said.anchored}{links if stored.broken_links else ''}"
        )
    return found
