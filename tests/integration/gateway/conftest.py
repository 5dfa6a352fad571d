"""A gateway on real Postgres and Valkey, a supplier that offers slots, and a buyer's wallet."""

import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from app.assembly import Gateway, build_price_point_loop
from app.config import Settings
from app.main import build_app
from ledger.authorization import ReadAccess
from ledger.encoding import Address, checksum_address
from ledger.signing import SigningKey

MODEL = "smollm2-135m-instruct"
REGION = "local"


@dataclass(frozen=True)
class Wallet:
    """A buyer's key."""

    key: SigningKey

    @property
    def address(self) -> Address:
        return self.key.address


@pytest.fixture
def wallet() -> Wallet:
    return Wallet(SigningKey(secrets.token_bytes(32)))


def gateway_settings(database_url: str, redis_url: str | None, **given: object) -> Settings:
    return Settings.model_validate(
        {
            "database_url": database_url,
            "redis_url": redis_url,
            "signing_key": secrets.token_hex(32),
            "content_key": secrets.token_hex(32),
            **given,
        }
    )


@pytest.fixture(scope="module")
def settings(database_url: str, redis_url: str) -> Settings:
    return gateway_settings(database_url, redis_url, market_refresh_seconds=0.05)


@dataclass(frozen=True)
class Seller:
    """One authorized agent with one deployment, written as its messages would write it."""

    database_url: str
    agent: str
    epoch: int

    def offer(self, slots: int, *, ask: int = 1_000, model: str = MODEL) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT offpeak.offer_capacity(%s, %s, %s, 'gpu0', %s, 'flexible', %s, %s, %s,"
                " now() + interval '1 day', 300, 20, 400000)",
                (uuid4(), self.agent, self.epoch, model, REGION, ask, slots),
            ).fetchone()
            assert found
            assert found[0]

    def heartbeat(self) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(
                "SELECT offpeak.seen_many(ARRAY[%s]::uuid[], ARRAY[%s]::bigint[], ARRAY[0])",
                (self.agent, self.epoch),
            )

    def leave(self) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute("SELECT offpeak.close_session(%s, %s)", (self.agent, self.epoch))


def authorize_seller(database_url: str) -> Seller:
    supplier, agent = uuid4(), uuid4()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO offpeak.supplier(id, name, state) VALUES (%s, %s, 'authorized')",
            (supplier, f"supplier {supplier}"),
        )
        connection.execute(
            "INSERT INTO offpeak.agent(id, supplier_id, device_key, state)"
            " VALUES (%s, %s, %s, 'authorized')",
            (agent, supplier, secrets.token_bytes(32)),
        )
        found = connection.execute(
            "SELECT offpeak.open_session(%s, 'replica-1', 'boot-1')", (agent,)
        ).fetchone()
    assert found
    return Seller(database_url, str(agent), found[0])


@pytest.fixture
def seller(database_url: str) -> Seller:
    return authorize_seller(database_url)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    app = build_app(settings)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
def gateway(app: FastAPI) -> Gateway:
    found = app.state.gateway
    assert isinstance(found, Gateway)
    return found


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


async def price_market(gateway: Gateway) -> None:
    """Store a price point as the worker would, and let the gateway read it."""
    loop = build_price_point_loop(gateway.settings, gateway.database)
    await loop.run_once(monotonic=time.monotonic())
    await gateway.market_loop.run_once()


def quote_body(wallet: Wallet, text: str = "Say hello.", **request: object) -> dict[str, object]:
    return {
        "payer": checksum_address(wallet.address),
        "salt": "0x" + "5a" * 32,
        "request": {
            "model": MODEL,
            "messages": [{"role": "user", "content": text}],
            "max_output_tokens": 64,
            **request,
        },
    }


def read_access(wallet: Wallet, *, scope: str, valid_until: int) -> ReadAccess:
    return ReadAccess(wallet.address, scope, valid_until, secrets.token_bytes(32))
