"""A gateway in this process on real Postgres with fsync, with agents that offer slots."""

import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
from fastapi import FastAPI

from app.assembly import Gateway, build_price_point_loop
from app.config import Settings
from app.db.engine import OPERATOR_ROLE, open_database
from app.db.migrate import migrate
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.kit.memory import settle_memory
from app.main import build_app
from app.wallets.funding import FundingService
from ledger.money import NANO_PER_TOKEN, Nano
from ledger.signing import SigningKey
from tests.integration.books import Books, Seller

MODEL = "smollm2-135m-instruct"
REGION = "local"
ASK = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """The gateway, its agents, and wallets with money."""

    app: FastAPI
    gateway: Gateway
    database_url: str
    postgres_pid: int
    sellers: Sequence[Seller]
    wallets: Sequence[SigningKey]

    async def refresh(self) -> None:
        """Keep agents and price fresh; without this, both are stale after seconds."""
        with Books(self.database_url, role="postgres") as books:
            ids, epochs = zip(*((s.agent_id, s.epoch) for s in self.sellers), strict=True)
            books.rows(
                "SELECT offpeak.seen_many(%s::uuid[], %s::bigint[], %s)",
                list(ids),
                list(epochs),
                [0] * len(ids),
            )
        points = build_price_point_loop(self.gateway.settings, self.gateway.database)
        await points.run_once(monotonic=time.monotonic())
        await self.gateway.market_loop.run_once()


@asynccontextmanager
async def open_market(*, agents: int, slots: int, wallets: int) -> AsyncIterator[Market]:
    """Yield a market whose gateway runs no loops of its own and whose agents have no sockets."""
    with EmbeddedPostgres.start(PostgresOptions(fsync=True)) as postgres:
        url = postgres.create_database("bench")
        migrate(url)
        with Books(url, role="postgres") as books:
            sellers = [books.seller(slots, ask=ASK) for _ in range(agents)]
        app = build_app(settings_for(url))
        gateway = app.state.gateway
        assert isinstance(gateway, Gateway)
        keys = [SigningKey(secrets.token_bytes(32)) for _ in range(wallets)]
        operators = open_database(url, pool_size=1, role=OPERATOR_ROLE)
        for key in keys:
            await FundingService(operators, gateway.settings).fund(
                key.address, Nano(100 * NANO_PER_TOKEN)
            )
        await operators.dispose()
        market = Market(
            app=app,
            gateway=gateway,
            database_url=url,
            postgres_pid=postgres.process.pid,
            sellers=sellers,
            wallets=keys,
        )
        await market.refresh()
        settle_memory()
        yield market
        await gateway.admission.drain()
        await gateway.database.dispose()


def settings_for(url: str) -> Settings:
    """Return a gateway's settings; quotes last, and a wallet may have as many jobs as it likes."""
    return Settings.model_validate(
        {
            "database_url": url,
            "signing_key": secrets.token_hex(32),
            "content_key": secrets.token_hex(32),
            "internal_secret": secrets.token_hex(32),
            "quote_expiry_seconds": 600,
            "open_jobs_per_wallet": 1_000_000,
        }
    )


def durable_commit_seconds(url: str, *, commits: int) -> list[float]:
    """Return the wall time of each of some one-row commits on a connection of their own."""
    found = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS public.bench_commit(at timestamptz)")
        for _ in range(commits):
            begun = time.perf_counter()
            connection.execute("INSERT INTO public.bench_commit VALUES (now())")
            found.append(time.perf_counter() - begun)
    return found
