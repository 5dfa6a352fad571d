"""Two loops: the worker's, which writes a price point a second, and the gateway's, which reads."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from uuid import UUID

import structlog

from app.capacity.costs import PriorCost, measured_totals
from app.capacity.market import Market, MarketSnapshot, Price, PricePoint, market_of
from app.capacity.placement import DeploymentOffer
from app.capacity.repository import CapacityRepository, MarketKey
from app.db.engine import Database
from pricing.curve import Curve
from pricing.errors import NoCapacity
from pricing.floor import (
    NOTHING_MEASURED,
    CostTotals,
    Floor,
    Speeds,
    blended_speeds,
    cost_floor,
)
from pricing.load import CapacityEvent, load_ppm, smoothed_load
from pricing.rates import covered_ask, rates_for

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PriceRules:
    """The configured part of every price."""

    prior: PriorCost
    margin_ppm: int
    curve: Curve
    window: timedelta
    cost_age: timedelta
    """How long measured sums are reused; they are sums over a day and move slowly."""

    def floor(self, measured: CostTotals) -> Floor:
        """Return the cost floor for what was measured."""
        return cost_floor(self.prior.totals(), measured, margin_ppm=self.margin_ppm)

    def price(self, floor: Floor, measured: CostTotals, *, load_ppm: int) -> Price:
        """Return the price at a load over a floor."""
        rates = rates_for(floor, self.curve, load_ppm)
        assumed = blended_speeds(self.prior.totals(), measured)
        ask = covered_ask(rates, assumed.prefill, assumed.decode, self.margin_ppm)
        return Price(rates, ask, self.authorized_speeds(measured))

    def authorized_speeds(self, measured: CostTotals) -> Speeds:
        """Return the speeds at which slot time is paid: the prior's, or faster measured ones.

        Never slower than the prior, so that slow work cannot make slow work the norm.
        """
        prior, assumed = self.prior, blended_speeds(self.prior.totals(), measured)
        return Speeds(
            max(assumed.prefill, Fraction(prior.prefill_tokens_per_second)),
            max(assumed.decode, Fraction(prior.decode_tokens_per_second)),
        )


class CostReader:
    """Measured costs by release, read anew only when they have aged."""

    def __init__(self, rules: PriceRules) -> None:
        self._rules = rules
        self._costs: Mapping[str, CostTotals] = {}
        self._read_at: float | None = None

    async def read(
        self, capacity: CapacityRepository, *, monotonic: float
    ) -> Mapping[str, CostTotals]:
        """Return totals at most `cost_age` old."""
        limit = self._rules.cost_age.total_seconds()
        if self._read_at is None or monotonic - self._read_at > limit:
            sums = await capacity.booked_sums(window=self._rules.window)
            self._costs = {
                release: measured_totals(booked, self._rules.prior)
                for release, booked in sums.items()
            }
            self._read_at = monotonic
        return self._costs


class PricePointLoop:
    """Stores load and floor of every market each second. Any worker may run it; one writes."""

    def __init__(self, database: Database, rules: PriceRules, *, interval_seconds: float) -> None:
        self._database = database
        self._rules = rules
        self._costs = CostReader(rules)
        self._interval_seconds = interval_seconds

    async def run_once(self, *, monotonic: float) -> int:
        """Mark silent agents stale, then store this second's points; return how many.

        The load is that of the deployments whose ask the floor covers: an offer that only a
        dearer price could buy neither dampens the price nor calls for it.

        Returns 0 when another worker holds the writer's lock.
        """
        async with self._database.transaction() as tx:
            capacity = CapacityRepository(tx)
            if not await capacity.take_writer_lock():
                return 0
            await capacity.mark_stale()
            now = await capacity.now()
            costs = await self._costs.read(capacity, monotonic=monotonic)
            asks = await capacity.asks()
            points: list[tuple[MarketKey, PricePoint]] = []
            for key, events in (await capacity.events(now=now)).items():
                measured = costs.get(key.release, NOTHING_MEASURED)
                floor = self._rules.floor(measured)
                ceiling = self._rules.price(floor, measured, load_ppm=0).ask
                sold = [
                    each for each in events if asks.get(UUID(str(each.deployment)), 0) <= ceiling
                ]
                load = current_load(sold, now_us=int(now.timestamp() * 1_000_000))
                if load is None:
                    continue
                point = PricePoint(
                    at=now.replace(microsecond=0),
                    load_ppm=load,
                    floor=floor,
                    curve_version=self._rules.curve.version,
                )
                points.append((key, point))
            await capacity.add_price_points(points)
            return len(points)

    async def run_round(self) -> int:
        """Do as `run_once`, now."""
        return await self.run_once(monotonic=time.monotonic())


def current_load(events: list[CapacityEvent], *, now_us: int) -> int | None:
    """Return the load in ppm, or None when no slot was on offer in the window."""
    try:
        return load_ppm(smoothed_load(events, now_us))
    except NoCapacity:
        return None


class MarketLoop:
    """Keeps one gateway's view of the market at most about a second old."""

    def __init__(
        self,
        database: Database,
        rules: PriceRules,
        *,
        stale: timedelta,
        watch: Callable[[MarketSnapshot], None],
    ) -> None:
        """Take the rules.

        Args:
            database: Where markets are read.
            rules: The configured part of prices.
            stale: How old a price point may be; without one that good, the floor itself tells
                which offers could be sold.
            watch: Is shown each new view, for the metrics.
        """
        self._database = database
        self._rules = rules
        self._costs = CostReader(rules)
        self._stale = stale
        self._watch = watch
        self._snapshot: MarketSnapshot | None = None

    @property
    def snapshot(self) -> MarketSnapshot | None:
        """The latest view, or None until the first read."""
        return self._snapshot

    async def run_once(self, *, monotonic: float) -> MarketSnapshot:
        """Read the market and keep the view."""
        async with self._database.transaction() as tx:
            capacity = CapacityRepository(tx)
            points = await capacity.latest_points()
            costs = await self._costs.read(capacity, monotonic=monotonic)
            deployments = await capacity.deployments()
            read_at = await capacity.now()
        read_monotonic = time.monotonic()
        offers = by_market(deployments)
        markets = tuple(
            self._market(key, offers.get(key, []), points.get(key), costs, now=read_at)
            for key in sorted({*offers, *points}, key=lambda key: (key.release, key.region))
        )
        self._snapshot = MarketSnapshot(read_at, read_monotonic, markets, deployments, costs)
        self._watch(self._snapshot)
        return self._snapshot

    def _market(
        self,
        key: MarketKey,
        offers: list[DeploymentOffer],
        point: PricePoint | None,
        costs: Mapping[str, CostTotals],
        *,
        now: datetime,
    ) -> Market:
        measured = costs.get(key.release, NOTHING_MEASURED)
        if point is not None and now - point.at <= self._stale:
            price = self._rules.price(point.floor, measured, load_ppm=point.load_ppm)
        else:
            price = self._rules.price(self._rules.floor(measured), measured, load_ppm=0)
        return market_of((key.release, key.region), offers, point=point, price=price)

    async def run_round(self) -> None:
        """Do as `run_once`, now. While the database is away the last view only grows older."""
        await self.run_once(monotonic=time.monotonic())


def by_market(deployments: Iterable[DeploymentOffer]) -> dict[MarketKey, list[DeploymentOffer]]:
    """Return deployments by the market that they serve."""
    found: dict[MarketKey, list[DeploymentOffer]] = {}
    for one in deployments:
        found.setdefault(MarketKey(one.release, one.region), []).append(one)
    return found
