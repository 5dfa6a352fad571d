from hypothesis import given
from hypothesis import strategies as st

from app.dispatch.liveness import LossGuard, SilenceLimits

SILENT = st.dictionaries(st.integers(0, 300), st.floats(0, 60), max_size=200)


def guard() -> LossGuard:
    return LossGuard(SilenceLimits())


def test_one_silent_agent_is_dead_after_25_seconds() -> None:
    assert guard().evictable({1: 25.0, 2: 0.0}, now=0.0) == frozenset()
    assert guard().evictable({1: 25.1, 2: 0.0}, now=0.0) == {1}


def test_mass_loss_evicts_nobody_for_a_minute_and_then_all() -> None:
    one = guard()
    silence = {number: 26.0 if number < 4 else 1.0 for number in range(10)}
    assert one.evictable(silence, now=0.0) == frozenset()
    assert one.evictable(silence, now=59.9) == frozenset()
    assert one.evictable(silence, now=60.0) == {0, 1, 2, 3}


def test_doubt_ends_when_the_agents_are_heard_again() -> None:
    one = guard()
    crowd = dict.fromkeys(range(10), 26.0)
    assert one.evictable(crowd, now=0.0) == frozenset()
    assert one.evictable({**dict.fromkeys(range(10), 1.0), 3: 26.0}, now=30.0) == {3}
    assert one.evictable(crowd, now=70.0) == frozenset()


def test_nine_agents_are_no_crowd() -> None:
    silence = dict.fromkeys(range(9), 26.0)
    assert guard().evictable(silence, now=0.0) == set(silence)


def test_200_agents_with_30_percent_of_heartbeats_delayed_5_s_lose_nobody() -> None:
    one = guard()
    for second in range(120):
        ages = {n: (5.0 if n % 10 < 3 else 0.0) + (second + n) % 5 for n in range(200)}
        assert one.evictable(ages, now=float(second)) == frozenset()


@given(SILENT)
def test_nobody_heard_within_25_seconds_is_ever_evicted(silence: dict[int, float]) -> None:
    assert all(silence[key] > 25 for key in guard().evictable(silence, now=0.0))
