from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import BadCapacityEvent, NoCapacity
from pricing.load import CapacityEvent, load_ppm, smoothed_load

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND


def at(seconds_ago: int, occupied: int, offered: int = 4, deployment: str = "a") -> CapacityEvent:
    return CapacityEvent(deployment, NOW - seconds_ago * SECOND, offered, occupied)


def test_a_state_weighs_as_long_as_it_lasted() -> None:
    assert smoothed_load([at(60, 0), at(15, 4)], NOW) == Fraction(1, 4)


def test_the_last_event_before_the_window_opens_it() -> None:
    assert smoothed_load([at(900, 1), at(600, 4), at(30, 0)], NOW) == Fraction(1, 2)


def test_an_event_exactly_at_the_start_opens_the_window() -> None:
    assert smoothed_load([at(61, 4), at(60, 1)], NOW) == Fraction(1, 4)


@pytest.mark.parametrize("occupied", [0, 1, 4])
def test_a_single_event_is_the_load(occupied: int) -> None:
    assert smoothed_load([at(1, occupied)], NOW) == Fraction(occupied, 4)


@pytest.mark.parametrize("events", [[], [at(10, 0, 0)], [at(0, 1)], [at(90, 4), at(60, 0, 0)]])
def test_no_offered_slot_has_no_load(events: list[CapacityEvent]) -> None:
    with pytest.raises(NoCapacity):
        smoothed_load(events, NOW)


def test_a_large_deployment_weighs_more_than_a_small_one() -> None:
    events = [at(60, 0, 30, "large"), at(60, 10, 10, "small")]
    assert smoothed_load(events, NOW) == Fraction(1, 4)


def test_a_deployment_known_by_uuid_is_the_same_by_text() -> None:
    known = UUID(int=7)
    early = CapacityEvent(known, NOW - 60 * SECOND, 4, 4)
    late = CapacityEvent(str(known), NOW - 30 * SECOND, 4, 0)
    assert smoothed_load([early, late], NOW) == Fraction(1, 2)


def test_a_stale_deployment_takes_offer_and_occupation_out_together() -> None:
    events = [at(60, 4, 4, "gone"), at(15, 0, 0, "gone"), at(60, 0, 4, "here")]
    assert smoothed_load(events, NOW) == Fraction(4 * 45, 4 * 45 + 4 * 60)


def test_an_offer_below_its_occupation_is_full_not_more() -> None:
    assert smoothed_load([at(60, 4, 2)], NOW) == 1


def test_of_two_events_at_one_microsecond_the_later_given_counts() -> None:
    assert smoothed_load([at(60, 0), at(60, 4)], NOW) == 1


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(BadCapacityEvent):
        CapacityEvent("a", NOW, -1, 0)


@pytest.mark.parametrize(
    ("load", "ppm"), [(Fraction(0), 0), (Fraction(2, 3), 666_666), (Fraction(1), 1_000_000)]
)
def test_load_in_ppm_is_rounded_down(load: Fraction, ppm: int) -> None:
    assert load_ppm(load) == ppm


HISTORIES = st.lists(
    st.builds(
        at,
        seconds_ago=st.integers(-5, 130),
        occupied=st.integers(0, 6),
        offered=st.integers(0, 5),
        deployment=st.sampled_from("abc"),
    ),
    max_size=25,
    unique_by=lambda event: (event.deployment, event.at_us),
)


def brute_force(events: list[CapacityEvent]) -> Fraction | None:
    """Add up second by second what each deployment's latest event says."""
    offered = occupied = 0
    for second in range(60):
        instant = NOW - (60 - second) * SECOND
        for deployment in "abc":
            known = [e for e in events if e.deployment == deployment and e.at_us <= instant]
            if known:
                latest = max(known, key=lambda event: event.at_us)
                offered += latest.offered
                occupied += latest.occupied
    return min(Fraction(occupied, offered), Fraction(1)) if offered else None


@given(HISTORIES, st.randoms())
def test_load_equals_the_brute_force_integral_in_any_order(
    events: list[CapacityEvent], order: object
) -> None:
    expected = brute_force(events)
    shuffled = sorted(events, key=lambda event: hash((event.at_us, id(order))))
    if expected is None:
        with pytest.raises(NoCapacity):
            smoothed_load(shuffled, NOW)
    else:
        assert smoothed_load(shuffled, NOW) == expected


@given(HISTORIES, st.sampled_from("abc"), st.integers(0, 59))
def test_load_never_falls_when_one_more_slot_is_occupied(
    events: list[CapacityEvent], deployment: str, seconds_ago: int
) -> None:
    raised = [
        CapacityEvent(e.deployment, e.at_us, e.offered, e.occupied + 1)
        if e.deployment == deployment and e.at_us <= NOW - seconds_ago * SECOND
        else e
        for e in events
    ]
    try:
        before = smoothed_load(events, NOW)
    except NoCapacity:
        return
    assert before <= smoothed_load(raised, NOW) <= 1


def test_how_often_an_agent_reports_does_not_change_the_load() -> None:
    seldom = [at(60, 1), at(20, 3)]
    often = [at(second, 1 if second > 20 else 3) for second in range(60, 0, -1)]
    assert smoothed_load(often, NOW) == smoothed_load(seldom, NOW)
