"""The load that prices respond to: occupied over offered slots, smoothed over 60 seconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from uuid import UUID

from pricing.errors import BadCapacityEvent, NoCapacity
from pricing.units import PPM

WINDOW_US = 60_000_000


@dataclass(frozen=True, slots=True)
class CapacityEvent:
    """The absolute state of one deployment from `at_us` until its next event.

    Occupied may exceed offered for a while: an owner who shrinks an offer does not
    end the work that is running on it.
    """

    deployment: str | UUID
    at_us: int
    """Microseconds since the epoch."""
    offered: int
    occupied: int

    def __post_init__(self) -> None:
        """Raise BadCapacityEvent on a negative count."""
        if self.offered < 0 or self.occupied < 0:
            raise BadCapacityEvent(offered=self.offered, occupied=self.occupied)


def smoothed_load(events: Iterable[CapacityEvent], now_us: int) -> Fraction:
    """Return the fraction of offered slot time that was occupied in the last 60 seconds.

    Both integrals are exact and run over all deployments, so a large deployment weighs
    more than a small one and a state weighs as long as it lasted, however often agents
    report. A deployment's last event at or before the window's start opens it; before its
    first event a deployment offers nothing. GPU activity plays no part.

    Args:
        events: In any order; of two events of one deployment at the same microsecond the
            later one in the iteration counts. Events after `now_us` are ignored.
        now_us: End of the window, microseconds since the epoch.

    Returns:
        An exact fraction, clipped to 0 (idle) to 1 (full).

    Raises:
        NoCapacity: no slot-second was on offer inside the window.
    """
    past = sorted(
        (event for event in events if event.at_us < now_us),
        key=lambda event: (str(event.deployment), event.at_us),
    )
    offered = occupied = 0
    for _, history in groupby(past, key=lambda event: str(event.deployment)):
        until_us = now_us
        for event in reversed(list(history)):
            span_us = max(until_us - max(event.at_us, now_us - WINDOW_US), 0)
            offered += event.offered * span_us
            occupied += event.occupied * span_us
            until_us = event.at_us
    if not offered:
        raise NoCapacity(window_us=WINDOW_US)
    return min(Fraction(occupied, offered), Fraction(1))


def load_ppm(load: Fraction) -> int:
    """Return the load in parts per million, rounded down: a buyer never pays for load not there."""
    assert 0 <= load <= 1
    return load.numerator * PPM // load.denominator
