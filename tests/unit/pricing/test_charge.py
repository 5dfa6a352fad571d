import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.money import MAX_NANO, Nano
from pricing.charge import TokenUsage, charge_for, max_charge
from pricing.errors import AmountOutOfRange, BadTokens, BadUsage
from pricing.rates import Rates
from tests.unit.pricing.strategies import ANY_RATES, RATES

CHEAP = Rates(Nano(100_000), Nano(400_000), Nano(1))
TOKENS = st.integers(0, 10**12)


def usage(
    input_tokens: int, output_tokens: int, *, cached: int = 0, thought: int = 0
) -> TokenUsage:
    return TokenUsage(input_tokens, cached, output_tokens, thought)


def test_a_maximum_is_rounded_up_once() -> None:
    """7 x 0.1 + 3 x 0.4 + 1 = 2.9 nano."""
    assert max_charge(CHEAP, 7, 3) == 3


def test_a_charge_is_rounded_down_once() -> None:
    assert charge_for(usage(7, 3), CHEAP, Nano(100)) == 2


@given(RATES, st.data())
def test_the_maximum_is_never_below_the_charge_of_any_usage_within_the_ceiling(
    rates: Rates, data: st.DataObject
) -> None:
    inputs, ceiling = data.draw(st.integers(0, 10**6)), data.draw(st.integers(0, 10**6))
    outputs = data.draw(st.integers(0, ceiling))
    maximum = max_charge(rates, inputs, ceiling)
    unlimited = charge_for(usage(inputs, outputs), rates, Nano(MAX_NANO))
    assert 0 < unlimited <= maximum
    assert charge_for(usage(inputs, outputs), rates, maximum) == unlimited


@given(RATES, TOKENS, TOKENS, st.integers(1, MAX_NANO).map(Nano))
def test_nothing_is_charged_above_what_was_authorized(
    rates: Rates, inputs: int, outputs: int, maximum: Nano
) -> None:
    assert 0 < charge_for(usage(inputs, outputs), rates, maximum) <= maximum


@given(ANY_RATES, TOKENS, TOKENS)
def test_no_amount_overflows_a_bigint_at_a_million_million_tokens(
    rates: Rates, inputs: int, ceiling: int
) -> None:
    exact = 10**6 * rates.per_request + inputs * rates.input_rate + ceiling * rates.output_rate
    if exact > 10**6 * MAX_NANO:
        maximum = Nano(MAX_NANO)
        with pytest.raises(AmountOutOfRange):
            max_charge(rates, inputs, ceiling)
    else:
        maximum = max_charge(rates, inputs, ceiling)
    assert 0 < charge_for(usage(inputs, ceiling), rates, maximum) <= maximum <= MAX_NANO


def test_the_dearest_request_that_fits_is_priced_and_one_nano_more_is_refused() -> None:
    rates = Rates(Nano(1), Nano(1), Nano(MAX_NANO - 1))
    assert max_charge(rates, 10**6, 0) == MAX_NANO
    with pytest.raises(AmountOutOfRange):
        max_charge(rates, 10**6, 1)


@given(RATES, st.integers(0, 10**6), st.integers(0, 10**6), st.data())
def test_reasoning_and_cached_tokens_are_billed_once(
    rates: Rates, inputs: int, outputs: int, data: st.DataObject
) -> None:
    cached, thought = data.draw(st.integers(0, inputs)), data.draw(st.integers(0, outputs))
    plain = charge_for(usage(inputs, outputs), rates, Nano(MAX_NANO))
    parts = usage(inputs, outputs, cached=cached, thought=thought)
    assert charge_for(parts, rates, Nano(MAX_NANO)) == plain


@pytest.mark.parametrize("counts", [(1, 2, 1, 0), (1, 0, 1, 2), (0, 1, 0, 0), (0, 0, 0, 1)])
def test_a_part_is_never_larger_than_its_whole(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(BadUsage):
        TokenUsage(*counts)


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("tokens", [-1, 10**12 + 1])
def test_a_count_out_of_range_is_refused(position: int, tokens: int) -> None:
    counts = [0, 0, 0, 0]
    counts[position] = tokens
    with pytest.raises(BadTokens):
        TokenUsage(*counts)


def test_a_hold_is_what_the_quotes_ceiling_costs_not_the_models_maximum() -> None:
    assert max_charge(CHEAP, 7, 3) < max_charge(CHEAP, 7, 2_048)


@pytest.mark.parametrize("maximum", [0, -1, MAX_NANO + 1])
def test_a_maximum_that_is_no_amount_is_refused(maximum: int) -> None:
    with pytest.raises(AmountOutOfRange):
        charge_for(usage(1, 1), CHEAP, Nano(maximum))
