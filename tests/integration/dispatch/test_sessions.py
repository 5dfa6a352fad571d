"""Who is let in, what may be offered, and who is thrown out."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from websockets.asyncio.client import connect as dial
from websockets.protocol import State

from app.capacity.suppliers import SupplierService
from app.db.engine import OPERATOR_ROLE, open_database
from app.dispatch import endpoints
from app.dispatch.loop import SUSPENDED
from app.dispatch.repository import AttemptRepository
from app.kit.errors import DatabaseUnavailable
from ledger.encoding import Address
from supplier_agent.protocol import (
    MAX_BEFORE_HELLO_BYTES,
    Accept,
    Refused,
    Run,
    Welcome,
    decode_from_gateway,
)
from tests.integration.dispatch.conftest import AgentAt, NewAgent
from tests.integration.dispatch.gateways import Gateway, World, gateway
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import AS_OPERATOR, ASSET, Wallet, register_agent


async def test_a_key_that_is_not_the_agents_is_refused(
    replica: Gateway, new_agent: NewAgent
) -> None:
    agent = await new_agent()
    await agent.dial(replica.url, sign_as=os.urandom(32))
    assert [m.code for m in agent.all_of(Refused)] == ["bad-signature"]


async def test_an_agent_nobody_registered_is_refused(replica: Gateway, new_agent: NewAgent) -> None:
    agent = await new_agent()
    agent.seeded = type(agent.seeded)(uuid4(), agent.seeded.key)
    await agent.dial(replica.url)
    assert [m.code for m in agent.all_of(Refused)] == ["unknown-agent"]


@pytest.mark.parametrize(
    ("state", "code"),
    [("pending", "suspended"), ("suspended", "suspended"), ("revoked", "revoked")],
)
async def test_an_agent_that_may_not_serve_is_told_so(
    world: World, replica: Gateway, new_agent: NewAgent, state: str, code: str
) -> None:
    agent = await new_agent()
    agent.seeded = await register_agent(world.database, state=state)
    await agent.dial(replica.url)
    assert [m.code for m in agent.all_of(Refused)] == [code]


async def test_connections_without_a_hello_are_bounded_and_keep_no_agent_out(
    replica: Gateway, agent_at: AgentAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,500 sockets of one stranger stayed open, each with room for a 1 MiB message."""
    monkeypatch.setattr(endpoints, "MAX_OPENING", 3)
    async with AsyncExitStack() as stack:
        strangers = [
            await stack.enter_async_context(
                dial(f"{replica.url}/v1/agents/connect", compression=None)
            )
            for _ in range(5)
        ]
        for ended in strangers[:2]:
            await ended.wait_closed()
        agent = await agent_at(replica)
        assert agent.all_of(Welcome)
        assert strangers[-1].state is State.OPEN


@pytest.mark.parametrize("first", ["x" * (MAX_BEFORE_HELLO_BYTES + 1), b"\x01", "{}"])
async def test_what_is_no_hello_ends_the_connection(replica: Gateway, first: str | bytes) -> None:
    async with dial(f"{replica.url}/v1/agents/connect", compression=None) as socket:
        await socket.recv()
        await socket.send(first)
        refused = decode_from_gateway(await socket.recv())
    assert isinstance(refused, Refused)
    assert refused.code == "bad-frame"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"release_fingerprint": "ab" * 32}, "another form"),
        ({"release": "unknown-model"}, "not an approved"),
        ({"ask_nano_per_slot_second": 0}, "above zero"),
    ],
    ids=["wrong-revision-is-not-served", "unapproved", "free"],
)
async def test_an_offer_that_may_not_be_sold_is_refused_in_words(
    world: World, replica: Gateway, new_agent: NewAgent, change: dict[str, object], words: str
) -> None:
    agent = await new_agent()
    await agent.dial(replica.url)
    await agent.offer(**change)
    await agent.until(lambda: bool(agent.reasons()))
    assert words in agent.reasons()[0]
    row = await world.row(
        "SELECT count(*) AS n FROM offpeak.deployment WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    assert row["n"] == 0


async def test_an_offer_that_turns_bad_is_withdrawn(
    world: World, replica: Gateway, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    await agent.offer(release_fingerprint="ab" * 32)
    await world.until(
        "SELECT offered = 0 FROM offpeak.deployment WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    await agent.offer()
    await world.until(
        "SELECT offered = 4 FROM offpeak.deployment WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    await agent.until(lambda: len(agent.reasons()) == 2)
    assert agent.reasons()[1] == ""


@pytest.fixture
async def suppliers(world: World) -> AsyncIterator[SupplierService]:
    """The operator's side of supply."""
    database = open_database(world.owner_url, pool_size=2, role=OPERATOR_ROLE)
    yield SupplierService(database, asset=Address(ASSET))
    await database.dispose()


async def supplier_of(world: World, agent: ScriptedAgent) -> UUID:
    """The supplier that an agent is registered for."""
    found = await world.row(
        "SELECT supplier_id FROM offpeak.agent WHERE id = :id", id=agent.seeded.agent_id
    )
    return UUID(str(found["supplier_id"]))


async def test_a_suspended_agent_gets_nothing_new_finishes_what_runs_and_then_leaves(
    world: World,
    replica: Gateway,
    wallet: Wallet,
    agent_at: AgentAt,
    suppliers: SupplierService,
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    run = await agent.next_run()
    await suppliers.suspend(await supplier_of(world, agent))
    assert (await world.accept(wallet)).code == "no_slot"
    await agent.offer()
    await agent.until(lambda: agent.reasons() == [SUSPENDED])
    await agent.serve(run)
    assert await replica.waiters.wait(placed.job_id, 20)
    assert (await world.job(placed.job_id))["state"] == "completed"
    await agent.until(agent.closed.is_set)
    assert [m.code for m in agent.all_of(Refused)] == ["suspended"]
    assert (await world.lease(placed.lease_id))["state"] == "done"


async def test_a_suspended_agent_that_is_let_in_again_offers_again(
    world: World,
    replica: Gateway,
    wallet: Wallet,
    agent_at: AgentAt,
    suppliers: SupplierService,
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await agent.next_run()
    supplier_id = await supplier_of(world, agent)
    await suppliers.suspend(supplier_id)
    await agent.until(lambda: agent.reasons() == [SUSPENDED])
    await suppliers.authorize(supplier_id)
    await agent.until(lambda: agent.reasons() == [SUSPENDED, ""])
    await agent.offer()
    await world.until(
        "SELECT offered = 4 FROM offpeak.deployment WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    assert agent.reasons() == [SUSPENDED, ""]


async def test_a_revoked_agent_loses_its_session_and_its_jobs(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await agent.next_run()
    spare = await agent_at(replica)
    async with world.database.transaction() as tx:
        await tx.execute(AS_OPERATOR)
        await tx.execute(
            text("UPDATE offpeak.agent SET state = 'revoked' WHERE id = :id"),
            {"id": agent.seeded.agent_id},
        )
    await agent.until(agent.closed.is_set)
    assert agent.all_of(Refused)[0].code == "revoked"
    await spare.serve(await spare.next_run())
    assert await replica.waiters.wait(placed.job_id, 20)


async def test_a_silent_agent_is_evicted_and_a_crowd_of_them_is_not(
    world: World, replica: Gateway, agent_at: AgentAt
) -> None:
    agents = [await agent_at(replica) for _ in range(10)]
    sessions = replica.service.dispatcher.sessions
    assert len(sessions) == 10
    loop = replica.service.loop
    now = time.monotonic()
    for session in list(sessions.values())[:4]:
        session.heard_at = now - 26
    await loop.tick(now=now)
    assert not any(session.ended.is_set() for session in sessions.values())
    for session in list(sessions.values())[1:4]:
        session.heard_at = now
    silent = next(iter(sessions))
    await loop.tick(now=now)
    await world.until(
        "SELECT state = 'offline' FROM offpeak.agent_session WHERE agent_id = :id", id=silent
    )
    assert len(sessions) == 9
    await asyncio.gather(*(agent.leave() for agent in agents))


@pytest.mark.parametrize("first", ["server", "application"])
async def test_a_clean_shutdown_leaves_the_work_with_its_agent(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt, first: str
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    replica.start(placed)
    await agent.next_run()
    if first == "server":
        replica.stopping.set()
    else:
        await replica.service.close()
    await agent.until(agent.closed.is_set)
    await replica.service.close()
    lease = await world.lease(placed.lease_id)
    assert lease["state"] == "active"
    assert len(agent.all_of(Run)) == 1
    assert len(agent.all_of(Welcome)) == 1


async def test_a_newer_session_sells_nothing_that_only_the_older_one_offered(
    world: World, replica: Gateway, agent_at: AgentAt
) -> None:
    """An agent that came back under another deployment name had its slots sold twice."""
    agent = await agent_at(replica)

    await agent.dial(replica.url)
    await agent.offer(deployment="renamed", offered=2)

    await world.until(
        "SELECT sum(offered) = 2 FROM offpeak.deployment WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    offered = await world.row(
        "SELECT array_agg(offered ORDER BY offered) AS slots FROM offpeak.deployment"
        " WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    assert offered == {"slots": [0, 2]}


async def test_an_accepted_lease_is_marked_as_running_when_the_database_is_back(
    world: World, wallet: Wallet, agent_at: AgentAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(world, f"one-{world.region}", loops=False) as replica:
        agent = await agent_at(replica)
        placed = await world.accept(wallet)
        replica.start(placed)
        await agent.say(Accept(lease=(await agent.next_run()).lease))
        accepted = replica.service.dispatcher.accepted
        async with asyncio.timeout(20):
            while not accepted:  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0.01)
        with monkeypatch.context() as broken:
            broken.setattr(AttemptRepository, "mark_running", failing)
            with pytest.raises(DatabaseUnavailable):
                await replica.service.loop.tick(now=time.monotonic())
        await replica.service.loop.tick(now=time.monotonic())
        assert (await world.job(placed.job_id))["state"] == "running"
        assert not accepted


async def failing(*_: object) -> None:
    raise DatabaseUnavailable("away")
