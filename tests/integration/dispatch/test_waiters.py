"""Who hears of a job's end: here, in another process, and without Valkey."""

import asyncio
import dataclasses

from app.jobs.waiters import JobWaiters
from app.kit.wakes import Wakes
from tests.integration.dispatch.conftest import AgentAt
from tests.integration.dispatch.gateways import Gateway, World, gateway
from tests.integration.seed import Wallet


async def test_a_wait_that_is_over_before_the_job_says_so(world: World) -> None:
    waiters = JobWaiters(world.database, Wakes(None))
    assert not await waiters.wait(world.some_id(), 0.01)
    assert waiters.waiting == 0


async def test_whoever_waits_after_the_end_need_not_wait(world: World) -> None:
    waiters = JobWaiters(world.database, Wakes(None))
    job_id = world.some_id()
    waiters.announce(job_id)
    assert await waiters.wait(job_id, 0)


async def test_all_that_wait_for_a_job_are_woken(world: World) -> None:
    waiters = JobWaiters(world.database, Wakes(None))
    job_id = world.some_id()
    waiting = [asyncio.create_task(waiters.wait(job_id, 20)) for _ in range(3)]
    await asyncio.sleep(0)
    assert waiters.waiting == 1
    waiters.announce(job_id)
    assert await asyncio.gather(*waiting) == [True] * 3
    assert waiters.waiting == 0


async def test_a_stopping_process_lets_nobody_wait(world: World) -> None:
    waiters = JobWaiters(world.database, Wakes(None))
    job_id = world.some_id()
    waiting = asyncio.create_task(waiters.wait(job_id, 20))
    await asyncio.sleep(0)
    waiters.release()
    assert not await waiting
    assert not await waiters.wait(job_id, 20)
    assert waiters.waiting == 0


async def test_valkey_wakes_another_process(world: World) -> None:
    async with (
        gateway(world, f"one-{world.region}", loops=False) as one,
        gateway(world, f"two-{world.region}", loops=False) as two,
    ):
        job_id = world.some_id()
        waiting = asyncio.create_task(two.waiters.wait(job_id, 20))
        await asyncio.sleep(0)
        one.waiters.announce(job_id)
        assert await waiting


async def test_valkey_down_loses_nothing(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    alone = dataclasses.replace(world, redis_url=None)
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    async with gateway(alone, f"two-{world.region}", loops=False) as other:
        waiting = asyncio.create_task(other.waiters.wait(placed.job_id, 20))
        replica.start(placed)
        await agent.serve(await agent.next_run())
        assert await waiting


async def test_records_that_a_crash_left_unsigned_get_the_same_signature(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await agent.serve(await agent.next_run())
    assert await replica.waiters.wait(placed.job_id, 20)
    first = await replica.records.signed(placed.job_id)
    assert first is not None
    await replica.records.drain()
    await world.as_owner(
        "UPDATE offpeak.usage_record SET signature = NULL, key_id = NULL WHERE record_id = %s",
        placed.job_id,
    )
    assert await replica.records.sign_unsigned(500) >= 1
    stored = await world.row(
        "SELECT signature, key_id FROM offpeak.usage_record WHERE record_id = :id",
        id=placed.job_id,
    )
    assert stored == {"signature": first.signature, "key_id": first.key_id}
    assert await replica.records.sign_unsigned(500) == 0
