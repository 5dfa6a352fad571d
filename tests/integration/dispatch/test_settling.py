"""From RUN to a signed record."""

from collections.abc import Awaitable, Callable

from app.jobs.content import open_answer
from ledger.signing import address_of, recover
from supplier_agent.protocol import Settled
from tests.integration.dispatch.gateways import SIGNING_KEY, Gateway, World
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import RATES, Wallet, accept

NewAgent = Callable[[], Awaitable[ScriptedAgent]]


async def ready(agent: ScriptedAgent, gateway: Gateway) -> None:
    await agent.dial(gateway.url)
    await agent.offer()
    await gateway.world.until(
        "SELECT offered = 4 FROM offpeak.deployment WHERE agent_id = :a", a=agent.seeded.agent_id
    )


async def test_a_result_is_charged_released_recorded_and_signed_once(
    world: World, replica: Gateway, wallet: Wallet, new_agent: NewAgent
) -> None:
    agent = await new_agent()
    await ready(agent, replica)
    placed = await accept(world.database, world.cipher, wallet)
    replica.start(placed)
    run = await agent.next_run()
    assert bytes(run.request) == placed.request
    await agent.serve(run)
    assert await replica.waiters.wait(placed.job_id, 20)
    await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))

    job = await world.job(placed.job_id)
    assert job["state"] == "completed"
    sealed = job["result"]
    assert isinstance(sealed, bytes)
    assert open_answer(world.cipher, placed.job_id, sealed).content == "Hello there!"
    signed = await replica.records.signed(placed.job_id)
    assert signed is not None
    expected = RATES.per_request + (12 * RATES.input_rate + 4 * RATES.output_rate) // 10**6
    assert signed.record.charge_nano == expected
    assert signed.record.held_nano == placed.max_charge
    assert recover(signed.digest, signed.signature) == address_of(SIGNING_KEY)
    assert agent.of_lease(Settled, run.lease)[0].outcome == "settled"
    await replica.records.drain()
    stored = await world.row(
        "SELECT * FROM offpeak.usage_record WHERE record_id = :id", id=placed.job_id
    )
    assert stored["signature"] == signed.signature
    balance = await world.row(
        "SELECT available, held FROM offpeak.wallet_balance WHERE account_id = :id",
        id=wallet.account_id,
    )
    assert balance == {"available": 10**12 - expected, "held": 0}
