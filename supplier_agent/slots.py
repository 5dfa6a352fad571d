"""Which lease has which engine slot, and which results wait for SETTLED.

The agent's own table is the authority on what its engine runs; the engine's gauge only confirms.
Pure: `now` is the agent's monotonic clock, in seconds, and comes in as an argument.

A lease is `running` (its stream is live), `stopping` (its stream is over, but the engine has not
confirmed that the slot is free) or `ended` (slot free, result kept). It leaves the table when the
gateway settles it, or `keep_seconds` after its end: no result counts by then.
"""

from dataclasses import dataclass
from enum import StrEnum

from supplier_agent.errors import AgentError
from supplier_agent.protocol import MAX_HELD_LEASES, stream_of


class NoSlot(AgentError):
    """Nothing was taken: every slot is busy, or what is kept leaves no room for one more."""

    code = "no-slot"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LeaseState(StrEnum):
    """Where a lease stands on this agent."""

    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the table may hold: slots, bytes of results (running ones at their ceiling), seconds."""

    slots: int
    keep_bytes: int = 64 << 20
    keep_seconds: float = 60.0


@dataclass(slots=True)
class _Entry:
    state: LeaseState
    slot: int | None
    ends_at: float
    bytes: int
    settled: bool = False


class SlotTable:
    """The table of one deployment."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = set(range(limits.slots))
        self._leases: dict[str, _Entry] = {}

    @property
    def free(self) -> int:
        """Slots that a RUN could take now."""
        return len(self._free)

    @property
    def is_freeing(self) -> bool:
        """Whether a slot waits for its engine's confirmation, so one may be free soon."""
        return any(entry.state is LeaseState.STOPPING for entry in self._leases.values())

    @property
    def kept_bytes(self) -> int:
        """Bytes of results kept, and of running streams at their ceiling."""
        return sum(entry.bytes for entry in self._leases.values())

    def state(self, lease: str) -> LeaseState | None:
        """Where the lease stands, or None where it is not ours."""
        entry = self._leases.get(lease)
        return entry.state if entry else None

    def slot(self, lease: str) -> int | None:
        """The engine slot that the lease holds, or None."""
        entry = self._leases.get(lease)
        return entry.slot if entry else None

    def ends_at(self, lease: str) -> float:
        """The monotonic second at which the lease is over."""
        return self._leases[lease].ends_at

    @property
    def held(self) -> tuple[str, ...]:
        """Leases a HELLO lists: all that run, or whose result still counts."""
        return tuple(lease for lease, entry in self._leases.items() if not entry.settled)

    def take(self, lease: str, *, now: float, remaining_seconds: float, ceiling_bytes: int) -> int:
        """Give the lease a slot and return its number.

        The lease ends `remaining_seconds` after `now`, whatever anybody says later.

        Raises:
            NoSlot: no slot or no room for a result of `ceiling_bytes`, or its stream id is taken.
        """
        assert lease not in self._leases
        if not self._free:
            raise NoSlot(f"all {self._limits.slots} slots are busy")
        if len(self._leases) >= MAX_HELD_LEASES:
            raise NoSlot(f"{len(self._leases)} results wait to be settled")
        if self.kept_bytes + ceiling_bytes > self._limits.keep_bytes:
            raise NoSlot(f"{self.kept_bytes} bytes of results wait to be settled")
        if any(stream_of(other) == stream_of(lease) for other in self._leases):
            raise NoSlot("another lease has this stream id")
        slot = min(self._free)
        self._free.remove(slot)
        ends_at = now + remaining_seconds
        self._leases[lease] = _Entry(LeaseState.RUNNING, slot, ends_at, ceiling_bytes)
        return slot

    def stop(self, lease: str) -> None:
        """The stream is over; the slot stays taken until `end`."""
        entry = self._leases[lease]
        assert entry.state is LeaseState.RUNNING
        entry.state = LeaseState.STOPPING

    def end(self, lease: str, *, kept_bytes: int) -> None:
        """The engine's slot is free and the result takes `kept_bytes`."""
        entry = self._leases[lease]
        assert entry.state is not LeaseState.ENDED
        assert entry.slot is not None
        self._free.add(entry.slot)
        entry.slot = None
        entry.state = LeaseState.ENDED
        entry.bytes = kept_bytes
        if entry.settled:
            del self._leases[lease]

    def settle(self, lease: str) -> None:
        """The gateway wants no more of this lease; unknown ones are ignored.

        One that still runs keeps its slot, and is forgotten when it ends.
        """
        entry = self._leases.get(lease)
        if entry is None:
            return
        entry.settled = True
        if entry.state is LeaseState.ENDED:
            del self._leases[lease]

    def expire(self, now: float) -> tuple[str, ...]:
        """Forget results that were never settled and no longer count; return their leases."""
        old = tuple(
            lease
            for lease, entry in self._leases.items()
            if entry.state is LeaseState.ENDED and now >= entry.ends_at + self._limits.keep_seconds
        )
        for lease in old:
            del self._leases[lease]
        return old
