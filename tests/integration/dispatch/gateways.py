"""Gateway replicas with nothing but dispatch on them, several in one process."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
import uvicorn
from prometheus_client import CollectorRegistry
from redis.asyncio import Redis
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from app.capacity.loop import MarketLoop
from app.db.engine import Database, open_database
from app.dispatch.attempt import AttemptLimits
from app.dispatch.dispatcher import DispatchParts
from app.dispatch.endpoints import PATH, WEBSOCKET_MAX_BYTES
from app.dispatch.metrics import DispatchMetrics
from app.dispatch.service import DispatchNeeds, DispatchService
from app.dispatch.work import AcceptedWork, ServedRelease
from app.jobs.waiters import JobWaiters
from app.kit.cipher import ContentCipher
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from app.kit.periodic import Periodic
from app.kit.wakes import Wakes
from app.receipts.record import RecordSigner
from app.receipts.service import RecordService
from ledger.encoding import Address
from ledger.usage import usage_record_domain
from tests.integration.markets import LIMITS, market_on
from tests.integration.seed import RATES, Placed, Wallet, Wanted, accept

SIGNING_KEY = bytes.fromhex("11" * 32)
MARKET_SECONDS = 0.05
DOMAIN = usage_record_domain(chain_id=31_337, receipt_anchor=Address("0x" + "03" * 20))


@dataclass(frozen=True, slots=True)
class World:
    """What the replicas of one test share."""

    database: Database
    cipher: ContentCipher
    releases: Mapping[str, ServedRelease]
    redis_url: str | None
    limits: AttemptLimits
    region: str
    """Of this test alone, so that no other test's agents take its work."""
    owner_url: str

    def some_id(self) -> UUID:
        """The id of a job that nobody has accepted."""
        return uuid4()

    async def accept(self, wallet: Wallet, **wanted: Any) -> Placed:
        """Accept a request in this test's region."""
        return await accept(
            self.database, self.cipher, wallet, Wanted(region=self.region, **wanted)
        )

    async def row(self, query: str, **given: object) -> Mapping[str, object]:
        async with self.database.transaction() as tx:
            return dict((await tx.execute(text(query), given)).mappings().one())

    async def as_owner(self, statement: LiteralString, *values: object) -> None:
        """Do what only the schema's owner may do, such as turning back the clock."""
        async with await psycopg.AsyncConnection.connect(self.owner_url) as connection:
            await connection.execute(statement, values)

    @asynccontextmanager
    async def locked_wallet(self, wallet: Wallet) -> AsyncIterator[None]:
        """Hold a wallet's row, so that nothing of it settles meanwhile."""
        async with await psycopg.AsyncConnection.connect(self.owner_url) as connection:
            await connection.execute(
                "SELECT FROM offpeak.wallet_balance WHERE account_id = %s FOR UPDATE",
                (wallet.account_id,),
            )
            yield

    async def job(self, job_id: UUID) -> Mapping[str, object]:
        return await self.row("SELECT * FROM offpeak.job WHERE id = :id", id=job_id)

    async def lease(self, lease_id: UUID) -> Mapping[str, object]:
        return await self.row("SELECT * FROM offpeak.lease WHERE id = :id", id=lease_id)

    async def until(self, query: str, **given: object) -> None:
        """Return once the query's one value is true."""
        async with asyncio.timeout(20):
            while True:
                async with self.database.transaction() as tx:
                    if await tx.scalar(text(query), given):
                        return
                await asyncio.sleep(0.02)


class Gateway:
    """One running replica."""

    def __init__(self, world: World, name: str, service: DispatchService, parts: "Shared") -> None:
        self.world = world
        self.name = name
        self.service = service
        self.records = parts.records
        self.waiters = parts.waiters
        self.wakes = parts.wakes
        self.metrics = parts.metrics
        self.see_market = parts.market_loop.run_round
        self.url = ""
        self.stopping = asyncio.Event()
        """Set to have the HTTP server stop, as SIGTERM does, before the application."""

    def start(self, placed: Placed) -> None:
        """Dispatch as the accepting replica does."""
        assert placed.code == "ok", placed.code
        assert placed.agent_id is not None
        assert placed.deployment_id is not None
        assert placed.replica is not None
        self.service.dispatcher.start(
            AcceptedWork(
                lease_id=placed.lease_id,
                job_id=placed.job_id,
                agent_id=placed.agent_id,
                deployment_id=placed.deployment_id,
                release="smollm2-135m-instruct",
                input_tokens=placed.input_tokens,
                max_output_tokens=placed.max_output,
                rates=RATES,
                max_charge=placed.max_charge,
                request_digest=placed.request_digest,
                salt=placed.salt,
                request=placed.request,
                remaining_seconds=60,
            ),
            replica=placed.replica,
        )

    def crash(self) -> None:
        """Stop as SIGKILL does: nothing is booked or handed over, sockets just break."""
        dispatcher = self.service.dispatcher
        dispatcher.closing = True
        for session in list(dispatcher.sessions.values()):
            session.abandoned = True
            session.end(1001)


@dataclass(frozen=True, slots=True)
class Shared:
    """One replica's parts that tests look at."""

    records: RecordService
    waiters: JobWaiters
    wakes: Wakes
    metrics: DispatchMetrics
    market_loop: MarketLoop


@asynccontextmanager
async def gateway(world: World, name: str, *, loops: bool = True) -> AsyncIterator[Gateway]:
    """A replica on a free loopback port; leaving the block is a clean shutdown."""
    market_loop, market = market_on(world.database)
    valkey = None if world.redis_url is None else Redis.from_url(world.redis_url)
    wakes = Wakes(valkey)
    shared = Shared(
        records=RecordService(world.database, RecordSigner(SIGNING_KEY, DOMAIN)),
        waiters=JobWaiters(world.database, wakes),
        wakes=wakes,
        metrics=DispatchMetrics(CollectorRegistry()),
        market_loop=market_loop,
    )
    service = DispatchService(
        name,
        DispatchParts(
            database=world.database,
            cipher=world.cipher,
            wakes=wakes,
            releases=world.releases,
            market=market,
            speed_limits=LIMITS,
            limits=world.limits,
        ),
        DispatchNeeds(
            records=shared.records,
            waiters=shared.waiters,
            metrics=shared.metrics,
            ids=IdSource(now_ms=unix_ms, random_bytes=os.urandom),
            drain_seconds=5,
        ),
    )
    running = Gateway(world, name, service, shared)
    app = Starlette(routes=[WebSocketRoute(PATH, service.endpoint)])
    listener = socket.create_server(("127.0.0.1", 0))
    running.url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            ws="websockets-sansio",
            ws_max_size=WEBSOCKET_MAX_BYTES,
            ws_per_message_deflate=False,
            ws_ping_interval=None,
            timeout_graceful_shutdown=5,
        )
    )
    tasks = [asyncio.create_task(shared.waiters.run()), asyncio.create_task(wakes.run())]
    await market_loop.run_round()
    watching = Periodic("market", MARKET_SECONDS, market_loop.run_round)
    tasks.append(asyncio.create_task(watching.run()))
    if loops:
        tasks.append(asyncio.create_task(service.run()))
    serving = asyncio.create_task(server._serve(sockets=[listener]))
    stopping = asyncio.create_task(stop(server, running.stopping))
    try:
        if valkey is not None:
            await asyncio.wait_for(wakes.listening.wait(), 10)
        yield running
    finally:
        await service.close()
        running.stopping.set()
        await asyncio.gather(stopping, serving)
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        if valkey is not None:
            await valkey.aclose()


async def stop(server: uvicorn.Server, stopping: asyncio.Event) -> None:
    """Have the server end its connections and stop, once `stopping` is set."""
    await stopping.wait()
    server.should_exit = True


def open_world(
    database_url: str, redis_url: str | None, releases: Mapping[str, ServedRelease]
) -> World:
    """A world on a migrated database."""
    return World(
        database=open_database(database_url, pool_size=10),
        cipher=ContentCipher([bytes(range(32))]),
        releases=releases,
        redis_url=redis_url,
        limits=AttemptLimits(),
        region=f"r{uuid4().hex}",
        owner_url=database_url,
    )
