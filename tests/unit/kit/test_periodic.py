import asyncio

import pytest

from app.kit.periodic import Periodic


async def test_a_failed_round_does_not_end_the_loop() -> None:
    third = asyncio.Event()
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            third.set()
        raise OSError

    loop = asyncio.create_task(Periodic("work", 0, work).run())
    await third.wait()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop


async def test_a_cancelled_loop_lets_its_round_end_first() -> None:
    started, finish, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        await finish.wait()
        ended.set()

    loop = asyncio.create_task(Periodic("work", 60, work).run())
    await started.wait()
    loop.cancel()
    await asyncio.sleep(0)
    assert not loop.done()
    finish.set()
    with pytest.raises(asyncio.CancelledError):
        await loop
    assert ended.is_set()
