"""Who is paid for work that came to nothing: `docs/explanation/who-pays-when.md`."""

from typing import Any
from uuid import UUID

from sqlalchemy import text

from supplier_agent.protocol import Accept, Fail, Run, Settled
from tests.integration.dispatch.conftest import AgentAt
from tests.integration.dispatch.gateways import Gateway, World, gateway
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import ASK, Wallet


def lease_of(run: Run) -> UUID:
    return UUID(run.lease.removeprefix("lease_"))


async def booked(world: World, lease_id: UUID) -> Any:
    """What a lease cost, in nano, and that its supplier was given just that."""
    row = await world.row(
        "SELECT c.kind, c.amount, coalesce((SELECT sum(t.amount) FROM offpeak.transfer t"
        " WHERE t.ref = c.lease_id), 0) AS moved"
        " FROM offpeak.cost_entry c WHERE c.lease_id = :lease",
        lease=lease_id,
    )
    assert row["kind"] == "failed_work"
    assert row["amount"] == row["moved"]
    return row["amount"]


async def fail(agent: ScriptedAgent, run: Run, **said: Any) -> None:
    await agent.say(Accept(lease=run.lease))
    await agent.say(Fail(lease=run.lease, **said))
    await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))


async def test_a_request_that_engines_refuse_ends_at_once_and_leaves_agent_and_market_alone(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await agent_at(replica)
    await fail(agent, await agent.next_run(), kind="bad-request", retryable=False)
    assert await replica.waiters.wait(placed.job_id, 20)
    job = await world.job(placed.job_id)
    assert (job["state"], job["failure_code"]) == ("failed", "request-refused")
    assert (job["faults"], job["dispatches"]) == (0, 1)
    assert await booked(world, placed.lease_id) == 0
    row = await world.row(
        "SELECT faults FROM offpeak.agent WHERE id = :id", id=agent.seeded.agent_id
    )
    assert row["faults"] == 0
    assert (await world.accept(wallet)).code == "ok"


async def test_a_late_second_try_is_paid_for_the_time_it_had_and_the_failed_first_is_not(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agents = {(a := await agent_at(replica)).seeded.agent_id: a for _ in range(2)}
    placed = await world.accept(wallet)
    replica.start(placed)
    assert placed.agent_id is not None
    first = agents.pop(placed.agent_id)
    [second] = agents.values()
    await fail(first, await first.next_run(), kind="engine-error", retryable=True)
    lease_id = lease_of(await second.next_run())
    # as if the second try had begun 5 s ago, 2 s before the deadline
    await world.as_owner(
        "UPDATE offpeak.lease SET started_at = clock_timestamp() - interval '5 s',"
        " ends_at = clock_timestamp() - interval '3 s' WHERE id = %s",
        lease_id,
    )
    await world.as_owner(
        "UPDATE offpeak.job SET deadline_at = clock_timestamp() - interval '3 s' WHERE id = %s",
        placed.job_id,
    )
    await expire(world)
    assert (await world.job(placed.job_id))["state"] == "expired"
    assert await booked(world, placed.lease_id) == 0
    paid = await booked(world, lease_id)
    assert 5 * ASK <= paid <= 20 * ASK


async def test_a_supplier_that_had_the_whole_time_and_missed_the_deadline_is_not_paid(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await agent.say(Accept(lease=(await agent.next_run()).lease))
    await world.as_owner(
        "UPDATE offpeak.lease SET started_at = started_at - interval '65 s',"
        " ends_at = ends_at - interval '65 s' WHERE id = %s",
        placed.lease_id,
    )
    await world.as_owner(
        "UPDATE offpeak.job SET deadline_at = deadline_at - interval '65 s' WHERE id = %s",
        placed.job_id,
    )
    await expire(world)
    assert (await world.job(placed.job_id))["state"] == "expired"
    assert await booked(world, placed.lease_id) == 0


async def test_an_answer_that_the_gateway_lost_hold_of_is_paid_up_to_what_its_prompt_takes(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    async with gateway(world, f"one-{world.region}", loops=False) as replica:
        agent = await agent_at(replica)
        placed = await world.accept(wallet)
        replica.start(placed)
        run = await agent.next_run()
        await world.as_owner(
            "UPDATE offpeak.lease SET started_at = started_at - interval '30 s' WHERE id = %s",
            placed.lease_id,
        )
        replica.service.dispatcher.forget(placed.lease_id)
        await agent.serve(run)
        await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))
        # 12 tokens at 300 a second, and half as much again
        assert await booked(world, placed.lease_id) == ASK * 60 // 1000


async def expire(world: World) -> None:
    """Have the sweeper meet what is overdue."""
    async with world.database.transaction() as tx:
        await tx.execute(text("SELECT offpeak.expire_due(100)"))
