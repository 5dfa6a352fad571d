from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.money import Nano
from pricing.errors import AmountOutOfRange, BadCosts, BadMargin, BadSpeed
from pricing.floor import (
    NOTHING_MEASURED,
    CostTotals,
    Floor,
    Speeds,
    blended_speeds,
    cost_floor,
    typical_request,
)
from pricing.rates import Rates, covered_ask
from tests.unit.pricing.strategies import MEASURED, PRIORS, SPEEDS

MARGINS = st.integers(0, 1_000_000)
PRIOR = typical_request(
    (400, 100),
    Speeds(Fraction(800), Fraction(20)),
    ask_nano=20_000,
    overhead_nano=3_000,
)


def test_a_typical_request_at_the_asking_price_is_the_floor() -> None:
    """0.5 s of prefill at 20,000 nano per second buys 400 tokens: 25 nano each."""
    floor = cost_floor(PRIOR, NOTHING_MEASURED, margin_ppm=0)
    assert floor == Floor(Nano(25_000_000), Nano(1_000_000_000), Nano(3_000))


def test_margin_comes_on_top_of_all_three_parts() -> None:
    floor = cost_floor(PRIOR, NOTHING_MEASURED, margin_ppm=100_000)
    assert floor == Floor(Nano(27_500_000), Nano(1_100_000_000), Nano(3_300))


def test_fifty_requests_of_measurement_weigh_as_much_as_the_prior() -> None:
    measured = CostTotals(
        **{field.name: 50 * getattr(PRIOR, field.name) for field in fields(PRIOR)}
    )
    dearer = replace(measured, supplier_nano=3 * measured.supplier_nano)
    floor = cost_floor(PRIOR, dearer, margin_ppm=0)
    assert floor == Floor(Nano(50_000_000), Nano(2_000_000_000), Nano(3_000))


def test_failed_work_is_carried_by_billed_tokens() -> None:
    failed = replace(NOTHING_MEASURED, failed_nano=50 * PRIOR.supplier_nano)
    before = cost_floor(PRIOR, NOTHING_MEASURED, margin_ppm=0)
    after = cost_floor(PRIOR, failed, margin_ppm=0)
    assert after == Floor(
        Nano(2 * before.input_rate), Nano(2 * before.output_rate), before.per_request
    )


@given(PRIORS, MEASURED, MARGINS)
def test_prices_are_above_zero_and_nothing_divides_by_zero(
    prior: CostTotals, measured: CostTotals, margin_ppm: int
) -> None:
    try:
        floor = cost_floor(prior, measured, margin_ppm=margin_ppm)
    except AmountOutOfRange as error:
        lowest = error.amount
    else:
        lowest = min(floor.input_rate, floor.output_rate, floor.per_request)
    assert lowest > 0


@given(st.integers(1, 10**6), MARGINS)
def test_measuring_exactly_the_prior_changes_nothing(times: int, margin_ppm: int) -> None:
    measured = CostTotals(
        **{field.name: times * getattr(PRIOR, field.name) for field in fields(PRIOR)}
    )
    assert cost_floor(PRIOR, measured, margin_ppm=margin_ppm) == cost_floor(
        PRIOR, NOTHING_MEASURED, margin_ppm=margin_ppm
    )


@given(st.integers(0, 10**4), st.sampled_from(["supplier_nano", "failed_nano", "overhead_nano"]))
def test_one_more_request_is_no_cliff(times: int, field: str) -> None:
    """A request ten times as dear as typical raises the floor by at most 10 parts in 50."""
    measured = CostTotals(**{f.name: times * getattr(PRIOR, f.name) for f in fields(PRIOR)})
    dear = {f.name: getattr(measured, f.name) + getattr(PRIOR, f.name) for f in fields(PRIOR)}
    dear[field] += 9 * (PRIOR.overhead_nano if field == "overhead_nano" else PRIOR.supplier_nano)
    before = cost_floor(PRIOR, measured, margin_ppm=0)
    after = cost_floor(PRIOR, CostTotals(**dear), margin_ppm=0)
    for part in ("input_rate", "output_rate", "per_request"):
        old, new = getattr(before, part), getattr(after, part)
        assert old <= new <= old + old * 10 // 50 + 1


@given(PRIORS, MEASURED, MARGINS, st.integers(1, 10**15))
def test_more_cost_never_lowers_the_floor(
    prior: CostTotals, measured: CostTotals, margin_ppm: int, more: int
) -> None:
    costs = ("supplier_nano", "overhead_nano", "failed_nano")
    dearer = replace(measured, **{name: getattr(measured, name) + more for name in costs})
    try:
        after = cost_floor(prior, dearer, margin_ppm=margin_ppm)
    except AmountOutOfRange:
        return
    before = cost_floor(prior, measured, margin_ppm=margin_ppm)
    assert before.input_rate <= after.input_rate
    assert before.output_rate <= after.output_rate
    assert before.per_request <= after.per_request


@given(st.integers(1, 10_000), st.integers(1, 10_000), SPEEDS, SPEEDS, MARGINS)
def test_a_floor_covers_the_ask_it_was_made_from(
    input_tokens: int, output_tokens: int, prefill: Fraction, decode: Fraction, margin_ppm: int
) -> None:
    ask = 20_000
    speeds = Speeds(prefill, decode)
    prior = typical_request((input_tokens, output_tokens), speeds, ask_nano=ask, overhead_nano=1)
    floor = cost_floor(prior, NOTHING_MEASURED, margin_ppm=margin_ppm)
    measured = blended_speeds(prior, NOTHING_MEASURED)
    rates = Rates(floor.input_rate, floor.output_rate, floor.per_request)
    assert covered_ask(rates, measured.prefill, measured.decode, margin_ppm) >= ask


@given(MEASURED, MARGINS, st.integers(1, 10**6))
def test_a_supplier_that_asks_the_measured_average_stays_covered(
    measured: CostTotals, margin_ppm: int, ask: int
) -> None:
    """Whatever the measured speeds turn out to be: no release is priced out of its only slot."""
    slot_us = measured.prefill_us + measured.decode_us
    paid = replace(measured, supplier_nano=-(-ask * slot_us // 1_000_000))
    prior = typical_request(
        (400, 100), Speeds(Fraction(800), Fraction(20)), ask_nano=ask, overhead_nano=1
    )
    try:
        floor = cost_floor(prior, paid, margin_ppm=margin_ppm)
    except AmountOutOfRange:
        return
    speeds = blended_speeds(prior, paid)
    rates = Rates(floor.input_rate, floor.output_rate, floor.per_request)
    assert covered_ask(rates, speeds.prefill, speeds.decode, margin_ppm) >= ask


@pytest.mark.parametrize("name", [f.name for f in fields(CostTotals) if f.name != "failed_nano"])
def test_a_prior_with_a_zero_total_is_refused(name: str) -> None:
    with pytest.raises(BadCosts):
        cost_floor(replace(PRIOR, **{name: 0}), NOTHING_MEASURED, margin_ppm=0)


@pytest.mark.parametrize("name", [f.name for f in fields(CostTotals)])
def test_a_negative_total_is_refused(name: str) -> None:
    with pytest.raises(BadCosts):
        replace(NOTHING_MEASURED, **{name: -1})


@pytest.mark.parametrize("margin_ppm", [-1, 10_000_001])
def test_a_margin_out_of_range_is_refused(margin_ppm: int) -> None:
    with pytest.raises(BadMargin):
        cost_floor(PRIOR, NOTHING_MEASURED, margin_ppm=margin_ppm)


def test_a_speed_of_zero_is_refused() -> None:
    with pytest.raises(BadSpeed):
        Speeds(Fraction(0), Fraction(1))
