from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from app.dispatch.service import served_releases
from app.dispatch.work import ServedRelease, SlotSpeeds
from app.models.catalogue import Catalogue
from app.models.release import ModelRelease
from app.models.tokenizer import CountingTokenizer
from tests.integration.dispatch.gateways import Gateway, World, gateway, open_world
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import Wallet, fund_wallet, register_agent

RELEASE = "smollm2-135m-instruct"
NewAgent = Callable[[], Awaitable[ScriptedAgent]]
AgentAt = Callable[[Gateway], Awaitable[ScriptedAgent]]


@pytest.fixture(scope="session")
def releases() -> Mapping[str, ServedRelease]:
    catalogue = Catalogue()

    def count_text(release: ModelRelease) -> Callable[[str], int]:
        return CountingTokenizer(release, catalogue.folder_of(release)).count_text

    return served_releases(catalogue, count_text, SlotSpeeds(300, 20))


@pytest.fixture
async def world(
    database_url: str, redis_url: str, releases: Mapping[str, ServedRelease]
) -> AsyncIterator[World]:
    opened = open_world(database_url, redis_url, releases)
    yield opened
    await opened.database.dispose()


@pytest.fixture
async def replica(world: World) -> AsyncIterator[Gateway]:
    async with gateway(world, f"one-{world.region}") as running:
        yield running


@pytest.fixture
async def wallet(world: World) -> Wallet:
    return await fund_wallet(world.database)


@pytest.fixture
async def new_agent(world: World) -> AsyncIterator[NewAgent]:
    """Registers an agent; it leaves at the end of the test."""
    async with AsyncExitStack() as made:

        async def make() -> ScriptedAgent:
            seeded = await register_agent(world.database)
            agent = ScriptedAgent(
                seeded, fingerprint=world.releases[RELEASE].fingerprint, region=world.region
            )
            made.push_async_callback(agent.leave)
            return agent

        yield make


@pytest.fixture
def agent_at(new_agent: NewAgent) -> AgentAt:
    """Makes an agent that is connected to a gateway and offers four slots."""

    async def make(gateway: Gateway) -> ScriptedAgent:
        agent = await new_agent()
        await connect(agent, gateway)
        return agent

    return make


async def connect(agent: ScriptedAgent, gateway: Gateway, *, held: tuple[str, ...] = ()) -> None:
    """Connect, offer four slots, and return once they can be leased and the gateway knows."""
    await agent.dial(gateway.url, held=held)
    await agent.offer()
    await gateway.world.until(
        "SELECT offered = 4 FROM offpeak.deployment WHERE agent_id = :agent",
        agent=agent.seeded.agent_id,
    )
    await gateway.see_market()
