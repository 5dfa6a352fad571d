"""Which deployments may take a job, the preferred ones first. Pure.

The database takes the least loaded of them that still has room; what is decided here is who may be
asked at all, from a view that is up to a second old. The accept call checks freshness, price and
room again on locked rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from ledger.money import Nano

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


def candidates(
    offers: Iterable[DeploymentOffer], *, release: str, region: str, ask_ceiling: Nano
) -> tuple[UUID, ...]:
    """Return the deployments that may take a job of `release` in `region`, best first.

    Cheap enough for the quote; then least loaded, flexible before reclaimable (it is returned
    gracefully), cheaper first, and by id so that every replica tries the same order. A full
    deployment stays on the list, last: its slot may have come back since the view was read.
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
            offer.occupied / offer.offered,
            offer.capacity_class != "flexible",
            offer.ask,
            offer.id,
        )
    )
    return tuple(offer.id for offer in fitting[:MAX_CANDIDATES])
