from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.money import MAX_NANO, Nano
from pricing.curve import DEFAULT_CURVE, Curve
from pricing.errors import AmountOutOfRange, BadMargin, BadSpeed, BadTokens, RunTooLong
from pricing.floor import Floor
from pricing.rates import Rates, ask_at, covered_ask, rates_for, run_seconds
from tests.unit.pricing.strategies import FLOORS, LOADS, RATES, SPEEDS, curves

FLOOR = Floor(Nano(3), Nano(1_000), Nano(7))


def test_each_price_is_the_floor_times_the_curve_rounded_up() -> None:
    assert rates_for(FLOOR, DEFAULT_CURVE, 800_000) == Rates(Nano(4), Nano(1_250), Nano(9))


@given(FLOORS, curves(), LOADS)
def test_no_rate_is_below_the_floor(floor: Floor, curve: Curve, load_ppm: int) -> None:
    rates = rates_for(floor, curve, load_ppm)
    assert rates.input_rate >= floor.input_rate
    assert rates.output_rate >= floor.output_rate
    assert rates.per_request >= floor.per_request


@given(FLOORS, curves(), LOADS, LOADS)
def test_no_rate_falls_when_load_rises(floor: Floor, curve: Curve, one: int, other: int) -> None:
    low, high = (rates_for(floor, curve, load) for load in sorted((one, other)))
    assert low.input_rate <= high.input_rate
    assert low.output_rate <= high.output_rate
    assert low.per_request <= high.per_request


@pytest.mark.parametrize("amount", [0, -1, MAX_NANO + 1])
@pytest.mark.parametrize("name", ["input_rate", "output_rate", "per_request"])
def test_prices_are_above_zero_and_never_a_sentinel(name: str, amount: int) -> None:
    with pytest.raises(AmountOutOfRange):
        replace(rates_for(FLOOR, DEFAULT_CURVE, 0), **{name: Nano(amount)})
    with pytest.raises(AmountOutOfRange):
        replace(FLOOR, **{name: Nano(amount)})


def test_a_rate_that_would_not_fit_the_ledger_is_refused() -> None:
    with pytest.raises(AmountOutOfRange):
        rates_for(replace(FLOOR, output_rate=Nano(MAX_NANO)), DEFAULT_CURVE, 1_000_000)


@given(RATES, SPEEDS, SPEEDS, st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_covered_ask_is_covered_for_any_mix_of_input_and_output(
    rates: Rates, prefill: Fraction, decode: Fraction, margin_ppm: int, inputs: int, outputs: int
) -> None:
    ask = covered_ask(rates, prefill, decode, margin_ppm)
    cost = ask * (inputs / prefill + outputs / decode) * Fraction(1_000_000 + margin_ppm, 10**6)
    earned = Fraction(inputs * rates.input_rate + outputs * rates.output_rate, 10**6)
    assert cost <= earned


@given(RATES, SPEEDS, SPEEDS, st.integers(0, 10**7))
def test_no_dearer_ask_is_covered_for_every_mix(
    rates: Rates, prefill: Fraction, decode: Fraction, margin_ppm: int
) -> None:
    dearer = covered_ask(rates, prefill, decode, margin_ppm) + 1
    cost = dearer * Fraction(1_000_000 + margin_ppm, 10**6)
    assert cost > min(prefill * rates.input_rate, decode * rates.output_rate) / 10**6


@given(FLOORS, curves(), LOADS, SPEEDS, SPEEDS, st.integers(0, 10**6))
def test_an_ask_that_the_floor_covers_grows_with_the_curve_and_stays_covered(
    floor: Floor, curve: Curve, load_ppm: int, prefill: Fraction, decode: Fraction, margin_ppm: int
) -> None:
    flat = Rates(floor.input_rate, floor.output_rate, floor.per_request)
    at_floor = covered_ask(flat, prefill, decode, margin_ppm)
    ask = ask_at(at_floor, curve, load_ppm)
    assert (
        at_floor
        <= ask
        <= covered_ask(rates_for(floor, curve, load_ppm), prefill, decode, margin_ppm)
    )


@pytest.mark.parametrize(("prefill", "decode"), [(0, 1), (1, 0), (-1, 1)])
def test_a_speed_not_above_zero_is_refused(prefill: int, decode: int) -> None:
    rates = rates_for(FLOOR, DEFAULT_CURVE, 0)
    with pytest.raises(BadSpeed):
        covered_ask(rates, prefill, decode, 0)
    with pytest.raises(BadSpeed):
        run_seconds(1, 1, prefill, decode)


def test_a_negative_margin_covers_nothing() -> None:
    with pytest.raises(BadMargin):
        covered_ask(rates_for(FLOOR, DEFAULT_CURVE, 0), 1, 1, -1)


@pytest.mark.parametrize(
    ("input_tokens", "ceiling", "seconds"),
    [(0, 0, 20), (100, 64, 20), (800, 200, 43), (1600, 400, 76), (801, 200, 44)],
)
def test_a_run_may_take_ten_seconds_and_three_times_the_expected(
    input_tokens: int, ceiling: int, seconds: int
) -> None:
    assert run_seconds(input_tokens, ceiling, 800, 20) == seconds


@given(st.integers(0, 10**6), st.integers(0, 10**4), SPEEDS, SPEEDS)
def test_a_run_is_never_shorter_than_its_expected_time_three_times_over(
    input_tokens: int, ceiling: int, prefill: Fraction, decode: Fraction
) -> None:
    try:
        seconds = run_seconds(input_tokens, ceiling, prefill, decode)
    except RunTooLong as error:
        seconds = error.seconds
    assert seconds >= 20
    assert seconds >= 10 + 3 * (input_tokens / prefill + ceiling / decode)


def test_a_run_longer_than_a_day_is_refused() -> None:
    with pytest.raises(RunTooLong):
        run_seconds(10**12, 10**12, 800, 20)


def test_more_than_a_million_million_tokens_are_refused() -> None:
    with pytest.raises(BadTokens):
        run_seconds(10**12 + 1, 1, 800, 20)
