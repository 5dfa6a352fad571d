from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from app.dispatch.service import served_releases
from app.dispatch.work import ServedRelease
from app.models.catalogue import Catalogue
from tests.integration.dispatch.gateways import Gateway, World, gateway, open_world
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import Wallet, fund_wallet, register_agent

RELEASE = "smollm2-135m-instruct"


@pytest.fixture(scope="session")
def releases() -> Mapping[str, ServedRelease]:
    return served_releases(Catalogue())


@pytest.fixture
async def world(
    database_url: str, redis_url: str, releases: Mapping[str, ServedRelease]
) -> AsyncIterator[World]:
    opened = open_world(database_url, redis_url, releases)
    yield opened
    await opened.database.dispose()


@pytest.fixture
async def replica(world: World) -> AsyncIterator[Gateway]:
    async with gateway(world, "one") as running:
        yield running


@pytest.fixture
async def wallet(world: World) -> Wallet:
    return await fund_wallet(world.database)


@pytest.fixture
async def new_agent(
    world: World, releases: Mapping[str, ServedRelease]
) -> AsyncIterator[Callable[[], Awaitable[ScriptedAgent]]]:
    """Registers an agent; hangs it up at the end of the test."""
    async with AsyncExitStack() as made:

        async def make() -> ScriptedAgent:
            seeded = await register_agent(world.database)
            agent = ScriptedAgent(seeded, fingerprint=releases[RELEASE].fingerprint)
            made.push_async_callback(agent.leave)
            return agent

        yield make
