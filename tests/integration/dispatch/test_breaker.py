"""An agent that fails at once is the least loaded of all; it must not draw all work to itself."""

from supplier_agent.protocol import Fail
from tests.integration.dispatch.conftest import AgentAt
from tests.integration.dispatch.gateways import Gateway, World
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import Placed, Wallet


async def lease_to(agent: ScriptedAgent, replica: Gateway, wallet: Wallet) -> Placed:
    """Accept a job whose only candidate can be this agent, and dispatch it."""
    placed = await replica.world.accept(wallet)
    assert placed.agent_id == agent.seeded.agent_id
    replica.start(placed)
    return placed


async def fail(agent: ScriptedAgent, replica: Gateway, wallet: Wallet, *, after: int) -> None:
    """Give the agent a job, which it fails; return once that is counted."""
    await lease_to(agent, replica, wallet)
    run = await agent.next_run(after=after)
    await agent.say(Fail(lease=run.lease, kind="engine-error", retryable=True))
    await replica.world.until(
        "SELECT faults = :n FROM offpeak.agent WHERE id = :id",
        id=agent.seeded.agent_id,
        n=after + 1,
    )
    # its job has had one try and would wait for another agent's slot: out of the way with it
    await replica.world.as_owner(
        "UPDATE offpeak.job SET deadline_at = now() - interval '3 s' WHERE region = %s",
        replica.world.region,
    )
    await replica.world.row("SELECT count(*) FROM offpeak.expire_due(100)")


async def test_an_agent_that_fails_everything_gets_no_new_work_and_is_told_why(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    broken = await agent_at(replica)
    for n in range(3):
        await fail(broken, replica, wallet, after=n)
    assert (await world.accept(wallet)).code == "no_slot"
    await broken.until(lambda: any("too many faults" in why for why in broken.reasons()))

    sound = await agent_at(replica)
    placed = await lease_to(sound, replica, wallet)
    await sound.serve(await sound.next_run())
    assert await replica.waiters.wait(placed.job_id, 20)


async def test_a_lone_agent_is_tried_again_after_its_rest(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    for n in range(3):
        await fail(agent, replica, wallet, after=n)
    assert (await world.accept(wallet)).code == "no_slot"
    await world.as_owner(
        "UPDATE offpeak.agent SET resting_until = now() WHERE id = %s", agent.seeded.agent_id
    )
    placed = await lease_to(agent, replica, wallet)
    await agent.serve(await agent.next_run(after=3))
    assert await replica.waiters.wait(placed.job_id, 20)


async def test_faults_between_served_jobs_leave_an_agent_its_work(
    replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    for n in range(2):
        await fail(agent, replica, wallet, after=n)
    placed = await lease_to(agent, replica, wallet)
    await agent.serve(await agent.next_run(after=2))
    assert await replica.waiters.wait(placed.job_id, 20)
    placed = await lease_to(agent, replica, wallet)
    run = await agent.next_run(after=3)
    await agent.say(Fail(lease=run.lease, kind="engine-error", retryable=True))
    await replica.world.until(
        "SELECT faults = 3 AND resting_until IS NULL AND cardinality(fault_times) = 1"
        " FROM offpeak.agent WHERE id = :id",
        id=agent.seeded.agent_id,
    )
