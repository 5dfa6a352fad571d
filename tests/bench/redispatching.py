"""How long a killed agent's job is without a slot: from the broken socket to the next RUN.

Real Postgres with fsync, no Valkey, two scripted agents.
"""

import time
from collections.abc import Sequence

from app.db.migrate import migrate
from app.dispatch.service import served_releases
from app.dispatch.work import SlotSpeeds
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.models.catalogue import Catalogue
from app.models.tokenizer import CountingTokenizer
from tests.bench.measure import MILLI, Effort, Measurement, Row, at_most, median, run_async
from tests.integration.dispatch.gateways import Gateway, World, gateway, open_world
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import fund_wallet, register_agent


async def offering(world: World, replica: Gateway) -> ScriptedAgent:
    seeded = await register_agent(world.database)
    [release] = world.releases.values()
    agent = ScriptedAgent(seeded, fingerprint=release.fingerprint, region=world.region)
    await agent.dial(replica.url)
    await agent.offer()
    await world.until(
        "SELECT offered = 4 FROM offpeak.deployment WHERE agent_id = :id", id=seeded.agent_id
    )
    return agent


async def waits_for_slots(url: str, kills: int) -> list[float]:
    """Return the seconds of each kill."""
    catalogue = Catalogue()
    releases = served_releases(
        catalogue,
        lambda one: CountingTokenizer(one, catalogue.folder_of(one)).count_text,
        SlotSpeeds(300, 20),
    )
    world = open_world(url, None, releases)
    wallet = await fund_wallet(world.database)
    waits = []
    async with gateway(world, "bench") as replica:
        spare = await offering(world, replica)
        for place in range(kills):
            doomed = await offering(world, replica)
            placed = await world.accept(wallet)
            while placed.agent_id != doomed.seeded.agent_id:
                replica.start(placed)
                await spare.serve(await spare.next_run(after=len(spare.served)))
                placed = await world.accept(wallet)
            replica.start(placed)
            await doomed.next_run()
            begun = time.perf_counter()
            await doomed.hang_up()
            run = await spare.next_run(after=len(spare.served))
            waits.append(time.perf_counter() - begun)
            await spare.serve(run)
            assert await replica.waiters.wait(placed.job_id, 20), place
        await spare.leave()
    await world.database.dispose()
    return waits


def measure(effort: Effort) -> Sequence[Row]:
    """Return the median and the worst."""
    with EmbeddedPostgres.start(PostgresOptions(fsync=True)) as postgres:
        url = postgres.create_database("bench")
        migrate(url)
        waits = run_async(waits_for_slots(url, effort.of(20, quick=3)))
    return [
        Row(
            name="re-dispatch p50",
            measured=median(waits) * MILLI,
            unit="ms",
            bar=at_most(300),
            note=f"{len(waits)} agents killed; worst {max(waits) * MILLI:.0f} ms",
        )
    ]


MEASUREMENTS = (Measurement("re-dispatch", measure),)
