"""Which deployments may take a job, in the order in which they are to be tried. Pure.

The accept call takes the first of them that has room, and checks freshness, price and room again
on locked rows; what is decided here is who may be asked at all, and how load is spread.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from ledger.money import Nano

FRESH = timedelta(seconds=15)
"""An agent unheard for so long gets no new work; `offpeak._fresh_for()` is the same."""

MAX_CANDIDATES = 32
"""More would cost every accept of a release more than a better choice is worth."""


@dataclass(frozen=True, slots=True)
class DeploymentOffer:
    """One fresh deployment as last read."""

    id: UUID
    release: str
    region: str
    capacity_class: str
    ask: Nano
    offered: int
    occupied: int
    prefill: int
    """Tokens per second of one slot, at least 1; so is `decode`."""
    decode: int
    gpu_activity_ppm: int | None = None


def candidates(
    offers: Iterable[DeploymentOffer],
    taken: Mapping[UUID, int],
    *,
    release: str,
    region: str,
    ask_ceiling: Nano,
) -> tuple[UUID, ...]:
    """Return the deployments that may take a job of `release` in `region`, best first.

    Cheap enough for the quote; then least loaded, flexible before reclaimable (it is returned
    gracefully), cheaper first, then by id. A full deployment stays on the list, last: its slot
    may have come back since the view was read.

    Args:
        offers: The fresh deployments as last read, up to a second ago.
        taken: Slots of each that we have given out since.
        release: Id of the model release.
        region: Where the quote says it runs.
        ask_ceiling: The dearest ask that the quote covers, nano per slot-second.
    """
    fitting = [
        offer
        for offer in offers
        if offer.release == release
        and offer.region == region
        and offer.ask <= ask_ceiling
        and offer.offered > 0
    ]
    fitting.sort(
        key=lambda offer: (
            (offer.occupied + taken.get(offer.id, 0)) / offer.offered,
            offer.capacity_class != "flexible",
            offer.ask,
            offer.id,
        )
    )
    return tuple(offer.id for offer in fitting[:MAX_CANDIDATES])
