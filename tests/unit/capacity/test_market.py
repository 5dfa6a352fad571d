from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.capacity.costs import BookedSums, PriorCost, measured_totals
from app.capacity.errors import NoFreshOffer, PriceStale
from app.capacity.loop import PriceRules, current_load
from app.capacity.market import (
    Market,
    MarketSnapshot,
    Offer,
    Price,
    PricedMarket,
    PricePoint,
    choose_market,
    market_of,
)
from app.capacity.placement import DeploymentOffer
from ledger.money import Nano
from pricing.curve import DEFAULT_CURVE
from pricing.floor import Floor, cost_floor
from pricing.load import CapacityEvent
from pricing.rates import Rates, ask_at

NOW = datetime(2026, 6, 1, tzinfo=UTC)
STALE = timedelta(seconds=10)
FLOOR = Floor(Nano(1), Nano(2), Nano(3))
PRICE = Price(Rates(Nano(1), Nano(2), Nano(3)), Nano(1_000))
PRIOR = PriorCost(400, 200, 300, 20, Nano(2_000), Nano(5_000))


def offer(offered: int, occupied: int = 0) -> Offer:
    return Offer(1, offered, occupied, Nano(1_000), 300, 20, None)


def point(age_seconds: float = 0) -> PricePoint:
    return PricePoint(NOW - timedelta(seconds=age_seconds), 250_000, FLOOR, Nano(1_000), 1)


def market(region: str, found: Offer | None, at: PricePoint | None, name: str = "m") -> Market:
    return Market(name, region, found, at, PRICE)


def deployment(
    number: int, *, ask: int = 1_000, speeds: tuple[int, int] = (300, 20)
) -> DeploymentOffer:
    prefill, decode = speeds
    return DeploymentOffer(
        UUID(int=number), "m", "east", "flexible", Nano(ask), 4, 1, prefill, decode
    )


def sold(*deployments: DeploymentOffer) -> Market:
    return market_of(("m", "east"), deployments, point=point(), price=PRICE)


def choose(*markets: Market, region: str | None = None) -> PricedMarket:
    snapshot = MarketSnapshot(NOW, 0.0, markets)
    return choose_market(snapshot, "m", region=region, now=NOW, stale=STALE)


def test_the_region_with_most_free_slots_is_quoted_unless_one_is_named() -> None:
    east, west = market("east", offer(4, 3), point()), market("west", offer(4), point())
    assert choose(east, west).region == "west"
    assert choose(east, west, region="east").region == "east"


@pytest.mark.parametrize(
    "markets",
    [
        (),
        (market("east", None, point()),),
        (market("east", offer(0), point()),),
        (market("east", offer(4), point(), "n"),),
    ],
)
def test_no_fresh_offer_is_no_capacity_and_not_a_load_of_zero(markets: tuple[Market, ...]) -> None:
    with pytest.raises(NoFreshOffer):
        choose(*markets)


def test_a_full_market_is_still_quoted() -> None:
    assert choose(market("east", offer(4, 4), point())).offer.free == 0


def test_an_old_price_is_not_quoted() -> None:
    assert choose(market("east", offer(4), point(10))).region == "east"
    for old in (point(10.1), None):
        with pytest.raises(PriceStale):
            choose(market("east", offer(4), old))


def test_the_database_clock_is_carried_forward_on_our_own() -> None:
    snapshot = MarketSnapshot(NOW, 100.0)
    assert snapshot.database_time(monotonic=101.5) == NOW + timedelta(seconds=1.5)


def test_measured_cost_moves_the_floor_and_an_empty_window_leaves_the_prior() -> None:
    nothing = measured_totals(BookedSums(0, 0, 0, 0, 0, 0), PRIOR)
    prior_only = cost_floor(PRIOR.totals(), nothing, margin_ppm=0)
    dear = BookedSums(1_000, 400_000, 200_000, 1_000_000_000, 11_333_000, 0)
    assert cost_floor(PRIOR.totals(), measured_totals(dear, PRIOR), margin_ppm=0).output_rate > (
        prior_only.output_rate
    )


@given(st.integers(1, 200), st.integers(1, 100_000), st.integers(0, 50))
def test_the_floor_covers_what_every_supplier_asked(
    requests: int, slot_ms: int, failed_nano: int
) -> None:
    ask = 2_501  # odd, so that most bookings were rounded down
    prior = PriorCost(400, 200, 300, 20, Nano(ask), Nano(5_000))
    booked = BookedSums(
        requests, 33 * requests, 9 * requests, ask * slot_ms // 1000 * requests,
        slot_ms * requests, failed_nano,
    )  # fmt: skip
    rules = PriceRules(prior, 150_000, DEFAULT_CURVE, timedelta(days=1), timedelta(seconds=30))
    floor, floor_ask = rules.floor(measured_totals(booked, prior))
    assert floor_ask >= ask
    assert ask_at(floor_ask, DEFAULT_CURVE, 0) == floor_ask
    assert floor.output_rate > 0


def test_slot_time_is_split_without_loss() -> None:
    totals = measured_totals(BookedSums(3, 100, 77, 5, 1_237, 1), PRIOR)
    assert totals.prefill_us + totals.decode_us == 1_237_000
    assert totals.overhead_nano == 15_000


def test_no_offer_in_the_window_is_no_load() -> None:
    second = 1_000_000
    assert current_load([], now_us=60 * second) is None
    gone = [CapacityEvent("d", 0, 0, 0)]
    assert current_load(gone, now_us=100 * second) is None
    half = [CapacityEvent("d", 0, 2, 1)]
    assert current_load(half, now_us=100 * second) == 500_000


def test_only_what_the_present_price_covers_is_a_market() -> None:
    found = sold(deployment(1), deployment(2, ask=1_001, speeds=(1, 1)))
    assert found.offer is not None
    assert (found.offer.deployments, found.offer.offered, found.offer.occupied) == (1, 4, 1)
    assert (found.offer.slowest_prefill, found.offer.slowest_decode) == (300, 20)
    assert found.too_dear == 1


def test_a_market_of_uncovered_asks_is_no_capacity_and_says_why() -> None:
    with pytest.raises(NoFreshOffer) as refused:
        choose(sold(deployment(1, ask=1_001)))
    assert refused.value.too_dear == 1
    assert "ask for more" in str(refused.value)
