"""Two loops: the worker's, which writes a price point a second, and the gateway's, which reads."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from app.capacity.costs import PriorCost, measured_totals
from app.capacity.market import Market, MarketSnapshot, Price, PricePoint, market_of
from app.capacity.placement import DeploymentOffer
from app.capacity.repository import CapacityRepository, MarketKey
from app.db.engine import Database
from ledger.money import Nano
from pricing.curve import Curve
from pricing.errors import NoCapacity
from pricing.floor import (
    NOTHING_MEASURED,
    CostTotals,
    Floor,
    blended_speeds,
    cost_floor,
)
from pricing.load import CapacityEvent, load_ppm, smoothed_load
from pricing.rates import Rates, ask_at, covered_ask, rates_for

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

    def floor(self, measured: CostTotals) -> tuple[Floor, Nano]:
        """Return the cost floor for what was measured, and the dearest ask that it covers.

        Both from the same totals: an ask from others, read a moment later, can be one that no
        supplier asks, and a quote over it is good for nothing.
        """
        prior = self.prior.totals()
        floor = cost_floor(prior, measured, margin_ppm=self.margin_ppm)
        speeds = blended_speeds(prior, measured)
        rates = Rates(floor.input_rate, floor.output_rate, floor.per_request)
        return floor, covered_ask(rates, speeds.prefill, speeds.decode, self.margin_ppm)

    def price(self, point: PricePoint) -> Price:
        """Return the price that follows from a price point."""
        return Price(
            rates_for(point.floor, self.curve, point.load_ppm),
            ask_at(point.floor_ask, self.curve, point.load_ppm),
        )

    def least_price(self, measured: CostTotals) -> Price:
        """Return the price at no load, for a market that has no price point yet."""
        floor, ask = self.floor(measured)
        return Price(rates_for(floor, self.curve, 0), ask_at(ask, self.curve, 0))


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
                floor, floor_ask = self._rules.floor(measured)
                ceiling = self._rules.least_price(measured).ask
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
                    floor_ask=floor_ask,
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
            stale: How old a price point may be; of an older one only the floor counts, and tells
                which offers could be sold.
            watch: Is shown each new view, for the metrics.
        """
        self._database = database
        self._rules = rules
        self._stale = stale
        self._watch = watch
        self._snapshot: MarketSnapshot | None = None

    @property
    def snapshot(self) -> MarketSnapshot | None:
        """The latest view, or None until the first read."""
        return self._snapshot

    async def run_once(self) -> MarketSnapshot:
        """Read the market and keep the view."""
        async with self._database.transaction() as tx:
            capacity = CapacityRepository(tx)
            points = await capacity.latest_points()
            deployments = await capacity.deployments()
            read_at = await capacity.now()
        read_monotonic = time.monotonic()
        offers = by_market(deployments)
        markets = tuple(
            self._market(key, offers.get(key, []), points.get(key), now=read_at)
            for key in sorted({*offers, *points}, key=lambda key: (key.release, key.region))
        )
        self._snapshot = MarketSnapshot(read_at, read_monotonic, markets, deployments)
        self._watch(self._snapshot)
        return self._snapshot

    def _market(
        self,
        key: MarketKey,
        offers: list[DeploymentOffer],
        point: PricePoint | None,
        *,
        now: datetime,
    ) -> Market:
        if point is None:
            price = self._rules.least_price(NOTHING_MEASURED)
        elif now - point.at > self._stale:
            price = self._rules.price(replace(point, load_ppm=0))
        else:
            price = self._rules.price(point)
        return market_of((key.release, key.region), offers, point=point, price=price)

    async def run_round(self) -> None:
        """Do as `run_once`, now. While the database is away the last view only grows older."""
        await self.run_once()


def by_market(deployments: Iterable[DeploymentOffer]) -> dict[MarketKey, list[DeploymentOffer]]:
    """Return deployments by the market that they serve."""
    found: dict[MarketKey, list[DeploymentOffer]] = {}
    for one in deployments:
        found.setdefault(MarketKey(one.release, one.region), []).append(one)
    return found
