"""Looking at the market, and pricing one request from it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from app.capacity.errors import PriceStale
from app.capacity.loop import MarketLoop, PriceRules
from app.capacity.market import MarketSnapshot, PricedMarket, choose_market
from app.capacity.placement import candidates
from ledger.money import Nano
from pricing.errors import RunTooLong
from pricing.rates import Rates, run_seconds


@dataclass(frozen=True, slots=True)
class MarketPrice:
    """What one unit costs in one market right now, and the dearest ask that it covers."""

    market: PricedMarket
    rates: Rates
    ask: Nano


class MarketService:
    """The gateway's view of the market."""

    def __init__(
        self,
        loop: MarketLoop,
        rules: PriceRules,
        *,
        stale: timedelta,
        monotonic: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._rules = rules
        self._stale = stale
        self._monotonic = monotonic
        self._taken: Counter[UUID] = Counter()
        self._taken_since: MarketSnapshot | None = None

    def snapshot(self) -> MarketSnapshot:
        """Return the latest view.

        Raises:
            PriceStale: the market has not been read yet.
        """
        snapshot = self._loop.snapshot
        if snapshot is None:
            limit = int(self._stale.total_seconds())
            raise PriceStale(age_seconds=limit, limit_seconds=limit)
        return snapshot

    def candidates(self, release: str, region: str, *, ask_ceiling: Nano) -> tuple[UUID, ...]:
        """Return the deployments that may take a job, the best first; see `placement`.

        Raises:
            PriceStale: the market has not been read yet.
        """
        snapshot = self.snapshot()
        if self._taken_since is not snapshot:
            self._taken_since = snapshot
            self._taken.clear()
        return candidates(
            snapshot.deployments,
            self._taken,
            release=release,
            region=region,
            ask_ceiling=ask_ceiling,
        )

    def note_taken(self, deployment_id: UUID) -> None:
        """Count a slot that was just leased, until the next view shows it."""
        self._taken[deployment_id] += 1

    def now(self) -> datetime:
        """Return the database clock's present reading; see `MarketSnapshot.database_time`."""
        return self.snapshot().database_time(monotonic=self._monotonic())

    def price(self, release: str, *, region: str | None) -> MarketPrice:
        """Return the present price of a release.

        Raises:
            NoFreshOffer, PriceStale: see `market.choose_market`.
        """
        snapshot = self.snapshot()
        now = snapshot.database_time(monotonic=self._monotonic())
        market = choose_market(snapshot, release, region=region, now=now, stale=self._stale)
        return MarketPrice(market, market.price.rates, market.price.ask)

    def is_covered(self, release: str, region: str, *, ask: int) -> bool:
        """Return whether present quotes cover an ask; True where no price is known."""
        snapshot = self._loop.snapshot
        markets = snapshot.markets_of(release) if snapshot else []
        return all(ask <= each.price.ask for each in markets if each.region == region)

    def run_seconds(
        self, market: PricedMarket, input_tokens: int, max_output_tokens: int, *, limit_seconds: int
    ) -> int:
        """Return how long a job may hold its slot: sized for the slowest fresh deployment.

        What the speeds that prices rest on can do within `limit_seconds` is sold all the same, with
        that much time: else one supplier's word makes every request of the market too long.

        Raises:
            RunTooLong: longer than that even at the speeds that prices rest on.
        """
        prior, offer = self._rules.prior, market.offer
        least = run_seconds(
            input_tokens,
            max_output_tokens,
            max(offer.slowest_prefill, prior.prefill_tokens_per_second),
            max(offer.slowest_decode, prior.decode_tokens_per_second),
        )
        if least > limit_seconds:
            raise RunTooLong(seconds=least, limit_seconds=limit_seconds)
        try:
            wanted = run_seconds(
                input_tokens, max_output_tokens, offer.slowest_prefill, offer.slowest_decode
            )
        except RunTooLong:
            return limit_seconds
        return min(wanted, limit_seconds)
