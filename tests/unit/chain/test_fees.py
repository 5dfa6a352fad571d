"""What is offered for gas: enough to be mined, never over the cap, and what may replace what."""

from hypothesis import given
from hypothesis import strategies as st

from app.chain.blocks import GasPrices
from app.chain.fees import Fees, capped, first_fees, replacement

wei = st.integers(min_value=0, max_value=10**13)
fees = st.builds(lambda a, b: Fees(max(a, b), min(a, b)), wei, wei)


@given(wei.filter(bool))
def test_a_bump_is_at_least_an_eighth_and_never_nothing(fee: int) -> None:
    bumped = Fees(fee, 0).bumped().max_fee
    assert 8 * bumped >= 9 * fee
    assert 8 * (bumped - 1) < 9 * fee
    assert bumped > fee


@given(wei, wei)
def test_a_first_attempt_outlasts_five_full_blocks(base: int, priority: int) -> None:
    first = first_fees(GasPrices(base=base, priority=priority))
    assert first.max_fee >= base * 9**5 // 8**5 + first.priority_fee


@given(fees, wei)
def test_capped_fees_are_under_the_cap_and_else_as_they_were(offered: Fees, cap: int) -> None:
    found = capped(offered, cap=cap)
    assert found.max_fee <= cap
    assert found == offered or offered.max_fee > cap


@given(fees, fees, st.integers(0, 10**13))
def test_a_replacement_pays_an_eighth_more_on_both_fees_and_never_above_the_cap(
    last: Fees, now: Fees, cap: int
) -> None:
    found = replacement(last, now, cap=cap)
    if found is None:
        return
    assert found.max_fee * 8 >= last.max_fee * 9
    assert found.priority_fee * 8 >= last.priority_fee * 9
    assert found.priority_fee <= found.max_fee <= cap


@given(fees, st.integers(0, 10**13))
def test_a_replacement_is_refused_only_where_the_cap_leaves_no_room(last: Fees, cap: int) -> None:
    found = replacement(last, last, cap=cap)
    assert (found is None) == (last.bumped().max_fee > cap)
