import asyncio
from collections.abc import Sequence

import pytest

from app.kit.batcher import Batcher, BatchLimits
from app.kit.errors import Busy, DatabaseUnavailable


class Refused(Exception):
    pass


class Deadlock(Exception):
    pass


class Lost(Exception):
    pass


class Doubler:
    """Answers 2n; negative items raise; the first call may be held back, the first few deadlock."""

    def __init__(self, *, deadlocks: int = 0, losses: int = 0) -> None:
        self.calls: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.deadlocks = deadlocks
        self.losses = losses
        self.running = 0
        self.most_running = 0

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.calls.append(list(items))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.gate.wait()
            if self.deadlocks:
                self.deadlocks -= 1
                raise Deadlock
            if self.losses:
                self.losses -= 1
                raise Lost
            if any(item < 0 for item in items):
                raise Refused
            return [2 * item for item in items]
        finally:
            self.running -= 1


def batcher_of(call: Doubler, limits: BatchLimits | None = None) -> Batcher[int, int]:
    return Batcher(
        call,
        retryable=lambda error: isinstance(error, Deadlock),
        unknown=lambda error: isinstance(error, Lost),
        limits=limits,
    )


async def until_called(call: Doubler, times: int) -> None:
    while len(call.calls) < times:  # noqa: ASYNC110 -- one turn of the loop at a time, no timer
        await asyncio.sleep(0)


async def test_a_lone_item_goes_at_once_and_a_crowd_shares_the_next_call() -> None:
    call = Doubler()
    call.gate.clear()
    batcher = batcher_of(call)
    first = asyncio.create_task(batcher.submit(1))
    await until_called(call, 1)
    rest = [asyncio.create_task(batcher.submit(item)) for item in range(2, 500)]
    await asyncio.sleep(0)
    call.gate.set()
    assert await asyncio.gather(first, *rest) == [2 * item for item in range(1, 500)]
    assert [len(items) for items in call.calls] == [1, 200, 200, 98]
    assert call.most_running == 1


async def test_as_many_calls_run_as_configured() -> None:
    call = Doubler()
    call.gate.clear()
    batcher = batcher_of(call, BatchLimits(batch_size=1, concurrent_calls=3))
    tasks = [asyncio.create_task(batcher.submit(item)) for item in range(9)]
    await until_called(call, 3)
    call.gate.set()
    await asyncio.gather(*tasks)
    assert call.most_running == 3


async def test_one_bad_item_does_not_fail_its_neighbours() -> None:
    call = Doubler()
    batcher = batcher_of(call)
    answers = await asyncio.gather(
        *(batcher.submit(item) for item in (1, -1, 3)), return_exceptions=True
    )
    assert answers[0] == 2
    assert isinstance(answers[1], Refused)
    assert answers[2] == 6


async def test_a_deadlock_repeats_the_whole_call() -> None:
    call = Doubler(deadlocks=2)
    batcher = batcher_of(call)
    assert await asyncio.gather(*(batcher.submit(item) for item in (1, 2))) == [2, 4]
    assert call.calls == [[1, 2], [1, 2], [1, 2]]


async def test_retries_end() -> None:
    call = Doubler(deadlocks=100)
    batcher = batcher_of(call, BatchLimits(retries=1))
    with pytest.raises(Deadlock):
        await batcher.submit(1)
    assert len(call.calls) == 2


async def test_a_full_queue_is_busy_and_takes_nothing() -> None:
    call = Doubler()
    call.gate.clear()
    batcher = batcher_of(call, BatchLimits(queue_length=2))
    running = asyncio.create_task(batcher.submit(0))
    await until_called(call, 1)
    waiting = [asyncio.create_task(batcher.submit(item)) for item in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(Busy) as refusal:
        await batcher.submit(3)
    assert refusal.value.queued == 2
    call.gate.set()
    await asyncio.gather(running, *waiting)
    assert 3 not in [item for items in call.calls for item in items]


async def test_a_cancelled_submitter_takes_a_waiting_item_back_and_harms_nobody() -> None:
    call = Doubler()
    call.gate.clear()
    batcher = batcher_of(call)
    in_call = asyncio.create_task(batcher.submit(1))
    await until_called(call, 1)
    waiting = asyncio.create_task(batcher.submit(2))
    neighbour = asyncio.create_task(batcher.submit(3))
    await asyncio.sleep(0)
    in_call.cancel()
    waiting.cancel()
    await asyncio.sleep(0)
    call.gate.set()
    assert await neighbour == 6
    assert call.calls == [[1], [3]]


async def test_draining_answers_what_was_taken_and_refuses_the_rest() -> None:
    call = Doubler()
    call.gate.clear()
    batcher = batcher_of(call)
    taken = [asyncio.create_task(batcher.submit(item)) for item in (1, 2)]
    await until_called(call, 1)
    draining = asyncio.create_task(batcher.drain())
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await batcher.submit(3)
    assert not draining.done()
    call.gate.set()
    await draining
    assert [task.result() for task in taken] == [2, 4]
    assert batcher.queued == 0


async def test_who_submits_again_as_soon_as_it_has_its_answer_is_not_left_waiting() -> None:
    """A runner that has just found nothing more to do must not be counted on."""
    batcher = batcher_of(Doubler())
    async with asyncio.timeout(5):
        for number in range(100):
            assert await batcher.submit(number) == 2 * number


async def test_a_cancelled_runner_takes_no_later_item_with_it() -> None:
    call = Doubler()
    batcher = batcher_of(call)
    call.gate.clear()
    waiting = asyncio.create_task(batcher.submit(1))
    await until_called(call, 1)
    [runner] = batcher._runners
    runner.cancel()
    await asyncio.wait([runner])
    waiting.cancel()
    call.gate.set()
    async with asyncio.timeout(5):
        assert await batcher.submit(2) == 4


@pytest.mark.parametrize("items", [[1], [1, 2]])
async def test_a_call_whose_answer_is_lost_is_made_once_more_whatever_its_size(
    items: list[int],
) -> None:
    call = Doubler(losses=1)
    batcher = batcher_of(call)
    answers = await asyncio.gather(*(batcher.submit(item) for item in items))
    assert answers == [2 * item for item in items]
    assert call.calls == [items, items]


@pytest.mark.parametrize("failing", [{"losses": 100}, {"deadlocks": 100}])
async def test_a_database_that_is_down_is_not_asked_for_each_item(failing: dict[str, int]) -> None:
    call = Doubler(**failing)
    batcher = batcher_of(call, BatchLimits(retries=1))
    answers = await asyncio.gather(
        *(batcher.submit(item) for item in range(200)), return_exceptions=True
    )
    assert {type(answer) for answer in answers} <= {Lost, Deadlock}
    assert [len(items) for items in call.calls] == [200, 200]


async def test_who_waits_too_long_is_told_that_nobody_knows_and_a_waiting_item_is_taken_back() -> (
    None
):
    call = Doubler()
    call.gate.clear()
    batcher = batcher_of(call, BatchLimits(wait_seconds=0.01))
    answers = await asyncio.gather(
        *(batcher.submit(item) for item in (1, 2)), batcher.submit(3), return_exceptions=True
    )
    assert {type(answer) for answer in answers} == {DatabaseUnavailable}
    call.gate.set()
    await batcher.drain()
    assert call.calls == [[1, 2, 3]]
