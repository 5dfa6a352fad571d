"""How long the agent waits before it dials again."""

from supplier_agent.agent import (
    FIRST_PAUSE_SECONDS,
    HOLDING_PAUSE_SECONDS,
    LAST_PAUSE_SECONDS,
    longest_pause,
    next_pause,
)


def test_backoff_grows_only_for_failures_before_authentication() -> None:
    pause = FIRST_PAUSE_SECONDS
    seen = []
    for _ in range(10):
        pause = next_pause(pause, welcomed=False)
        seen.append(pause)

    assert seen == sorted(seen)
    assert seen[-1] == LAST_PAUSE_SECONDS
    assert next_pause(pause, welcomed=True) == FIRST_PAUSE_SECONDS


def test_an_agent_that_holds_leases_dials_again_soon() -> None:
    assert longest_pause(LAST_PAUSE_SECONDS, holding=True) == HOLDING_PAUSE_SECONDS
    assert longest_pause(FIRST_PAUSE_SECONDS, holding=True) == FIRST_PAUSE_SECONDS
    assert longest_pause(LAST_PAUSE_SECONDS, holding=False) == LAST_PAUSE_SECONDS
