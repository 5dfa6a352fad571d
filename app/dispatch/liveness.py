"""Who is suspect, who is dead, and when to doubt ourselves instead. Pure.

Times are the receiver's monotonic clock, in seconds. Rules: channel.md, "Liveness".
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key")

GUARD_AGENTS = 10
GUARD_PERCENT = 30
GUARD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """Seconds without a frame: no new work, then declared dead."""

    suspect_seconds: float = 15.0
    dead_seconds: float = 25.0


class LossGuard:
    """Holds evictions back when so many fall silent at once that the fault is likely our own.

    With at least 10 agents known and more than 30 % of them silent nobody is evicted, for at
    most 60 s. A closed socket is no silence and never passes here.
    """

    def __init__(self, limits: SilenceLimits) -> None:
        self._limits = limits
        self._doubt_since: float | None = None

    def evictable(self, silent_seconds: Mapping[Key, float], *, now: float) -> AbstractSet[Key]:
        """Return the agents to declare dead now, given every known agent's silence."""
        known = len(silent_seconds)
        suspects = sum(age > self._limits.suspect_seconds for age in silent_seconds.values())
        if known < GUARD_AGENTS or suspects * 100 <= known * GUARD_PERCENT:
            self._doubt_since = None
        elif self._doubt_since is None:
            self._doubt_since = now
        if self._doubt_since is not None and now - self._doubt_since < GUARD_SECONDS:
            return frozenset()
        limit = self._limits.dead_seconds
        return frozenset(key for key, age in silent_seconds.items() if age > limit)
