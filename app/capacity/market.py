"""What is on offer right now, and the choice of a market to quote from. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.capacity.errors import NoFreshOffer, PriceStale
from app.capacity.placement import DeploymentOffer
from ledger.money import Nano
from pricing.floor import Floor
from pricing.rates import Rates


@dataclass(frozen=True, slots=True)
class PricePoint:
    """Load and floor of one release and region at one second; quotes cite it."""

    at: datetime
    load_ppm: int
    floor: Floor
    floor_ask: Nano
    """The dearest supplier ask that the floor covers, nano per slot-second."""
    curve_version: int


@dataclass(frozen=True, slots=True)
class Price:
    """What one unit costs now, and the dearest ask that it covers (nano per slot-second)."""

    rates: Rates
    ask: Nano


@dataclass(frozen=True, slots=True)
class Offer:
    """Several deployments of one release and region together."""

    deployments: int
    offered: int
    occupied: int
    dearest_ask: Nano
    slowest_prefill: int
    slowest_decode: int
    gpu_activity_ppm: int | None
    """Mean of what the agents report. Telemetry: shown, never priced."""

    @property
    def free(self) -> int:
        """Slots that could be leased; 0 while an owner shrinks below what is running."""
        return max(self.offered - self.occupied, 0)


def together(deployments: Sequence[DeploymentOffer]) -> Offer | None:
    """Return deployments of one market together, None when there are none."""
    if not deployments:
        return None
    activity = [one.gpu_activity_ppm for one in deployments if one.gpu_activity_ppm is not None]
    return Offer(
        deployments=len(deployments),
        offered=sum(one.offered for one in deployments),
        occupied=sum(one.occupied for one in deployments),
        dearest_ask=max(one.ask for one in deployments),
        slowest_prefill=min(one.prefill for one in deployments),
        slowest_decode=min(one.decode for one in deployments),
        gpu_activity_ppm=sum(activity) // len(activity) if activity else None,
    )


@dataclass(frozen=True, slots=True)
class Market:
    """One release in one region.

    `offer` is what its present price covers, None when that is nothing; `too_dear` counts the
    deployments that ask for more. Only what is covered can be sold, so only that is shown, sizes
    runs and is a market.
    """

    release: str
    region: str
    offer: Offer | None
    point: PricePoint | None
    price: Price
    too_dear: int = 0


def market_of(
    place: tuple[str, str],
    deployments: Sequence[DeploymentOffer],
    *,
    point: PricePoint | None,
    price: Price,
) -> Market:
    """Return the market of a (release, region) from its fresh deployments and its price."""
    release, region = place
    covered = [one for one in deployments if one.ask <= price.ask]
    return Market(
        release=release,
        region=region,
        offer=together(covered),
        point=point,
        price=price,
        too_dear=len(deployments) - len(covered),
    )


@dataclass(frozen=True, slots=True)
class MarketSnapshot:
    """All markets as read at `read_at` (database clock), `read_monotonic` on our own.

    Together the two tell the database's time later without asking it, so that a quote's expiry is
    set by the clock that will judge it.
    """

    read_at: datetime
    read_monotonic: float
    markets: tuple[Market, ...] = ()
    deployments: tuple[DeploymentOffer, ...] = ()

    def database_time(self, *, monotonic: float) -> datetime:
        """Return the database clock's present reading, as far as ours kept pace."""
        return self.read_at + timedelta(seconds=monotonic - self.read_monotonic)

    def markets_of(self, release: str) -> list[Market]:
        """Return the release's markets, by region."""
        found = [market for market in self.markets if market.release == release]
        return sorted(found, key=lambda market: market.region)


@dataclass(frozen=True, slots=True)
class PricedMarket:
    """A market with both an offer and a price that may be quoted."""

    release: str
    region: str
    offer: Offer
    point: PricePoint
    price: Price


def choose_market(
    snapshot: MarketSnapshot, release: str, *, region: str | None, now: datetime, stale: timedelta
) -> PricedMarket:
    """Return the market to quote from: the named region, or the one with most free slots.

    Args:
        snapshot: The latest view.
        release: Name of an approved model release.
        region: Where it must run, if the buyer cares.
        now: The database clock's present reading.
        stale: How old a price point may be.

    Raises:
        NoFreshOffer: no fresh deployment offers a slot at an ask that the present price covers.
        PriceStale: the price point is too old or there is none yet.
    """
    markets = [each for each in snapshot.markets_of(release) if region in {None, each.region}]
    candidates = [
        (market, market.offer)
        for market in markets
        if market.offer is not None and market.offer.offered
    ]
    if not candidates:
        too_dear = sum(market.too_dear for market in markets)
        raise NoFreshOffer(release=release, region=region, too_dear=too_dear)
    market, offer = max(candidates, key=lambda pair: pair[1].free)
    limit = int(stale.total_seconds())
    if market.point is None:
        raise PriceStale(age_seconds=limit, limit_seconds=limit)
    age = now - market.point.at
    if age > stale:
        raise PriceStale(age_seconds=int(age.total_seconds()), limit_seconds=limit)
    return PricedMarket(market.release, market.region, offer, market.point, market.price)
