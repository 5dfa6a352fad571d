"""How long a killed agent's job is without a slot: from the broken socket to the next RUN.

Bar (design/bars.md): p50 <= 300 ms while spare slots exist. Run from the repository's root:
`python -m tests.bench.redispatch`. Real Postgres with fsync, no Valkey, two scripted agents.
"""

import asyncio
import statistics
import time

from app.db.migrate import migrate
from app.dispatch.service import served_releases
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.models.catalogue import Catalogue
from app.models.tokenizer import CountingTokenizer
from tests.integration.dispatch.gateways import Gateway, World, gateway, open_world
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import fund_wallet, register_agent

ROUNDS = 20


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


async def measure(url: str) -> None:
    catalogue = Catalogue()
    releases = served_releases(
        catalogue, lambda one: CountingTokenizer(one, catalogue.folder_of(one)).count_text
    )
    world = open_world(url, None, releases)
    wallet = await fund_wallet(world.database)
    waits = []
    async with gateway(world, "bench") as replica:
        spare = await offering(world, replica)
        for place in range(ROUNDS):
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
    waits.sort()
    print(f"agents killed      {len(waits)}")
    print(f"re-dispatch p50    {statistics.median(waits) * 1e3:6.1f} ms")
    print(f"re-dispatch worst  {waits[-1] * 1e3:6.1f} ms")


def main() -> None:
    with EmbeddedPostgres.start(PostgresOptions(fsync=True)) as postgres:
        url = postgres.create_database("bench")
        migrate(url)
        asyncio.run(measure(url))


if __name__ == "__main__":
    main()
