"""What happens to a job when its agent, its socket, its replica or its slot goes away."""

import asyncio
import dataclasses
from typing import Any
from uuid import UUID

import pytest

from app.dispatch.attempt import AttemptLimits
from ledger.usage import Outcome
from supplier_agent.protocol import (
    Accept,
    Busy,
    Cancel,
    Cancelled,
    Fail,
    FailKind,
    Refused,
    Run,
    Settled,
    Usage,
)
from tests.integration.dispatch.conftest import AgentAt, NewAgent, connect
from tests.integration.dispatch.gateways import Gateway, World, gateway
from tests.integration.dispatch.scripted_agent import ScriptedAgent, sse
from tests.integration.seed import Placed, Wallet

IMPATIENT = AttemptLimits(accept_seconds=0.3, stall_seconds=0.3, queue_seconds=0.5)


def impatient(world: World) -> World:
    return dataclasses.replace(world, limits=IMPATIENT)


async def ended(gateway: Gateway, placed: Placed) -> dict[str, Any]:
    """The job, once it has ended."""
    assert await gateway.waiters.wait(placed.job_id, 20)
    return dict(await gateway.world.job(placed.job_id))


async def records(world: World, placed: Placed) -> Any:
    row = await world.row(
        "SELECT count(*) AS n FROM offpeak.usage_record WHERE record_id = :id", id=placed.job_id
    )
    return row["n"]


async def agents_faults(world: World, agent: ScriptedAgent) -> Any:
    row = await world.row(
        "SELECT faults FROM offpeak.agent WHERE id = :id", id=agent.seeded.agent_id
    )
    return row["faults"]


async def occupied(world: World) -> Any:
    row = await world.row(
        "SELECT coalesce(sum(occupied), 0) AS n FROM offpeak.deployment WHERE region = :region",
        region=world.region,
    )
    return row["n"]


async def test_a_killed_agents_job_runs_elsewhere_and_settles_once(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    doomed = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await doomed.next_run()
    await doomed.say(Accept(lease=run.lease))
    spare = await agent_at(replica)
    await doomed.hang_up()
    again = await spare.next_run()
    assert again.job == run.job
    await spare.serve(again)
    job = await ended(replica, placed)
    assert job["state"] == "completed"
    assert job["dispatches"] == 2
    assert (await world.lease(placed.lease_id))["state"] == "lost"
    assert await records(world, placed) == 1
    assert await occupied(world) == 0


async def test_a_job_without_a_slot_waits_for_the_next_one(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    doomed = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await doomed.next_run()
    await doomed.hang_up()
    await world.until("SELECT state = 'queued' FROM offpeak.job WHERE id = :id", id=placed.job_id)
    late = await agent_at(replica)
    await late.serve(await late.next_run())
    assert (await ended(replica, placed))["state"] == "completed"


async def test_a_job_that_finds_no_other_slot_fails_free_of_charge(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    async with gateway(impatient(world), f"one-{world.region}") as replica:
        doomed = await agent_at(replica)
        placed = await world.accept(wallet)
        replica.start(placed)
        await doomed.next_run()
        await doomed.hang_up()
        job = await ended(replica, placed)
        assert (job["state"], job["failure_code"]) == ("failed", "no-capacity")
        signed = await replica.records.signed(placed.job_id)
        assert signed is not None
        assert signed.record.outcome is Outcome.FAILED
        assert signed.record.charge_nano == 0
        assert signed.record.released_nano == placed.max_charge


async def test_two_faulted_attempts_end_the_job_and_retry_excludes_what_failed(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agents = [await agent_at(replica), await agent_at(replica)]
    placed = await world.accept(wallet)
    replica.start(placed)

    async def fail(agent: ScriptedAgent) -> UUID:
        run = await agent.next_run()
        await agent.say(Accept(lease=run.lease))
        await agent.say(Fail(lease=run.lease, kind="engine-error", retryable=True))
        await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))
        return agent.seeded.agent_id

    failed = await asyncio.gather(*(fail(agent) for agent in agents))
    assert len(set(failed)) == 2
    job = await ended(replica, placed)
    assert (job["state"], job["failure_code"]) == ("failed", "supplier-failed")
    assert await records(world, placed) == 1
    assert await occupied(world) == 0


@pytest.mark.parametrize("kind", ["bad-request", "engine-busy", "stopping"])
async def test_4xx_busy_and_reclaim_never_count_against_an_agent(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt, kind: FailKind
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await agent.next_run()
    spare = await agent_at(replica)
    await agent.say(Fail(lease=run.lease, kind=kind, retryable=True))
    await spare.serve(await spare.next_run())
    assert (await ended(replica, placed))["state"] == "completed"
    assert await agents_faults(world, agent) == 0


async def test_busy_moves_the_job_without_a_fault(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await agent.next_run()
    spare = await agent_at(replica)
    await agent.say(Busy(lease=run.lease))
    await spare.serve(await spare.next_run())
    job = await ended(replica, placed)
    assert (job["state"], job["faults"]) == ("completed", 0)
    assert await agents_faults(world, agent) == 0


async def test_an_agent_that_does_not_accept_in_time_loses_the_job(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    async with gateway(impatient(world), f"one-{world.region}") as replica:
        mute = await agent_at(replica)
        placed = await world.accept(wallet)
        spare = await agent_at(replica)
        replica.start(placed)
        run = await mute.next_run()
        await spare.serve(await spare.next_run())
        assert (await ended(replica, placed))["state"] == "completed"
        assert (await world.lease(placed.lease_id))["reason"] == "not-accepted"
        await mute.until(lambda: bool(mute.of_lease(Cancel, run.lease)))


async def test_a_stream_without_progress_is_given_up_and_its_slot_kept_until_confirmed(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    async with gateway(impatient(world), f"one-{world.region}") as replica:
        silent = await agent_at(replica)
        placed = await world.accept(wallet)
        spare = await agent_at(replica)
        replica.start(placed)
        run = await silent.next_run()
        await silent.say(Accept(lease=run.lease))
        await silent.stream(run.lease, [b": ping\n\n", b": ping\n\n"])
        await spare.serve(await spare.next_run())
        assert (await ended(replica, placed))["state"] == "completed"
        lease = await world.lease(placed.lease_id)
        assert (lease["state"], lease["reason"]) == ("ending", "stalled")
        assert await occupied(world) == 1
        await silent.until(lambda: bool(silent.of_lease(Cancel, run.lease)))
        await silent.say(Cancelled(lease=run.lease, stream_bytes=0))
        await silent.until(lambda: bool(silent.of_lease(Settled, run.lease)))
        assert (await world.lease(placed.lease_id))["state"] == "done"
        assert await occupied(world) == 0
        await world.until(
            "SELECT faults = 1 FROM offpeak.agent WHERE id = :id", id=silent.seeded.agent_id
        )


async def test_a_job_cancelled_by_another_process_is_stopped_at_its_agent(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await agent.next_run()
    await agent.say(Accept(lease=run.lease))
    await world.row(
        "SELECT code FROM offpeak.end_many(ARRAY[CAST(:job AS uuid)], ARRAY[CAST(:lease AS uuid)],"
        " ARRAY['cancelled'], ARRAY['cancelled'], ARRAY[''], ARRAY['ending'],"
        " ARRAY[CAST(1000 AS bigint)])",
        job=placed.job_id,
        lease=placed.lease_id,
    )
    await agent.until(lambda: bool(agent.of_lease(Cancel, run.lease)))
    await agent.say(Cancelled(lease=run.lease, stream_bytes=0))
    await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))
    assert await occupied(world) == 0
    assert (await ended(replica, placed))["state"] == "cancelled"


@pytest.mark.parametrize("valkey", ["up", "absent"])
async def test_two_replicas_serve_each_others_agents(
    world: World, wallet: Wallet, agent_at: AgentAt, valkey: str
) -> None:
    shared = world if valkey == "up" else dataclasses.replace(world, redis_url=None)
    async with (
        gateway(shared, f"one-{world.region}") as one,
        gateway(shared, f"two-{world.region}") as two,
    ):
        agents = [await agent_at(one), await agent_at(two)]
        placed = [await world.accept(wallet) for _ in range(4)]
        assert {p.replica for p in placed} == {one.name, two.name}
        for request in placed:
            other = two if request.replica == one.name else one
            other.start(request)

        async def serve(agent: ScriptedAgent) -> None:
            for place in range(2):
                await agent.serve(await agent.next_run(after=place))

        waiting = [
            asyncio.create_task((two if p.replica == one.name else one).waiters.wait(p.job_id, 20))
            for p in placed
        ]
        await asyncio.gather(*(serve(agent) for agent in agents))
        assert all(await asyncio.gather(*waiting))
        assert [await records(world, p) for p in placed] == [1, 1, 1, 1]


async def test_a_result_of_a_crashed_gateway_is_settled_once_by_the_next(
    world: World, wallet: Wallet, new_agent: NewAgent
) -> None:
    async with (
        gateway(world, f"one-{world.region}") as one,
        gateway(world, f"two-{world.region}") as two,
    ):
        agent = await new_agent()
        await connect(agent, one)
        placed = await world.accept(wallet)
        one.start(placed)
        run = await agent.next_run()
        await agent.say(Accept(lease=run.lease))
        usage = Usage(input_tokens=12, cached_input_tokens=0, output_tokens=4)
        pieces = sse(["Hello", " there", "!"], usage=usage)
        await agent.stream(run.lease, pieces[:2])
        one.crash()
        await agent.until(agent.closed.is_set)

        await connect(agent, two, held=(run.lease,))
        size = await agent.stream(run.lease, pieces)
        done = agent.done(run, pieces, stream_bytes=size)
        await agent.say(done)
        job = await ended(two, placed)
        assert (job["state"], job["dispatches"], job["faults"]) == ("completed", 1, 0)
        await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))
        await agent.say(done)
        await agent.until(lambda: len(agent.of_lease(Settled, run.lease)) == 2)
        assert await records(world, placed) == 1
        assert not agent.all_of(Run)


async def test_a_lease_that_a_crash_left_unsent_is_run_without_a_fault(
    world: World, wallet: Wallet, new_agent: NewAgent
) -> None:
    async with (
        gateway(world, f"one-{world.region}") as one,
        gateway(world, f"two-{world.region}") as two,
    ):
        agent = await new_agent()
        await connect(agent, one)
        placed = await world.accept(wallet)
        one.crash()  # after the commit, before RUN
        await agent.until(agent.closed.is_set)
        await connect(agent, two)
        await agent.serve(await agent.next_run())
        job = await ended(two, placed)
        assert (job["state"], job["faults"]) == ("completed", 0)


async def test_a_lease_whose_replica_died_before_its_agent_accepted_moves_before_the_agent_is_dead(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    limits = AttemptLimits(unaccepted_seconds=1.0)
    async with gateway(world, f"one-{world.region}") as one:
        stranded = await agent_at(one)
        placed = await world.accept(wallet)
        one.crash()  # the session's row stays online and fresh
        async with gateway(dataclasses.replace(world, limits=limits), f"two-{world.region}") as two:
            spare = await agent_at(two)
            await spare.serve(await spare.next_run())
            job = await ended(two, placed)
            assert (job["state"], job["dispatches"], job["faults"]) == ("completed", 2, 0)
            assert (await world.lease(placed.lease_id))["state"] == "ending"

            await connect(stranded, two)  # it never had the lease, so its slot comes back
            await world.until(
                "SELECT state = 'lost' FROM offpeak.lease WHERE id = :id", id=placed.lease_id
            )


async def test_the_sweep_sends_what_nobody_started(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    await agent.serve(await agent.next_run())
    assert (await ended(replica, placed))["state"] == "completed"


async def test_a_second_session_of_an_agent_ends_the_first_and_keeps_its_leases(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    first = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await first.next_run()
    await first.say(Accept(lease=run.lease))
    second = ScriptedAgent(first.seeded, fingerprint=first.fingerprint, region=first.region)
    await connect(second, replica, held=(run.lease,))
    await first.until(first.closed.is_set)
    assert first.all_of(Refused)[0].code == "superseded"
    await second.serve(run, accept=False)
    job = await ended(replica, placed)
    assert (job["state"], job["dispatches"]) == ("completed", 1)
    await second.leave()


async def test_a_session_superseded_at_another_replica_is_ended_by_the_sweep(
    world: World, agent_at: AgentAt
) -> None:
    async with (
        gateway(world, f"one-{world.region}") as one,
        gateway(world, f"two-{world.region}") as two,
    ):
        first = await agent_at(one)
        second = ScriptedAgent(first.seeded, fingerprint=first.fingerprint, region=first.region)
        await connect(second, two)
        await first.until(first.closed.is_set)
        assert first.all_of(Refused)[0].code == "superseded"
        row = await world.row(
            "SELECT state, replica FROM offpeak.agent_session WHERE agent_id = :id",
            id=first.seeded.agent_id,
        )
        assert row == {"state": "online", "replica": two.name}
        await second.leave()


async def test_leases_of_an_agent_that_no_replica_hears_are_found_and_moved(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    async with (
        gateway(world, f"one-{world.region}") as one,
        gateway(world, f"two-{world.region}") as two,
    ):
        gone = await agent_at(one)
        placed = await world.accept(wallet)
        one.start(placed)
        await gone.next_run()
        one.crash()
        spare = await agent_at(two)
        # as if 26 seconds had passed since anybody heard it; only the owner may write this table
        await world.as_owner(
            "UPDATE offpeak.agent_session SET seen_at = seen_at - interval '26 s'"
            " WHERE agent_id = %s",
            gone.seeded.agent_id,
        )
        await spare.serve(await spare.next_run())
        assert (await ended(two, placed))["state"] == "completed"


async def test_a_result_whose_settlement_is_under_way_is_answered_in_the_next_session(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await agent.next_run()
    async with world.locked_wallet(wallet):
        await agent.serve(run)
        await world.until("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        await agent.hang_up()
        await agent.dial(replica.url, held=(run.lease,))
    assert await replica.waiters.wait(placed.job_id, 20)
    await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))
    assert agent.of_lease(Settled, run.lease)[0].outcome == "settled"
    assert await records(world, placed) == 1


async def test_many_dials_at_once_leave_one_live_session(
    world: World, replica: Gateway, agent_at: AgentAt
) -> None:
    first = await agent_at(replica)
    twins = [
        ScriptedAgent(first.seeded, fingerprint=first.fingerprint, region=first.region)
        for _ in range(6)
    ]
    await asyncio.gather(*(twin.dial(replica.url) for twin in twins))
    everyone = [first, *twins]

    async def alone() -> None:
        while sum(not one.closed.is_set() for one in everyone) > 1:  # noqa: ASYNC110 -- many sources
            await asyncio.sleep(0.02)

    async with asyncio.timeout(20):
        await alone()
    row = await world.row(
        "SELECT epoch, state FROM offpeak.agent_session WHERE agent_id = :id",
        id=first.seeded.agent_id,
    )
    session = replica.service.dispatcher.sessions[first.seeded.agent_id]
    assert row == {"epoch": session.epoch, "state": "online"}
    for one in everyone:
        await one.leave()
