"""A database that is slow, locked, gone, or that loses one answer."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.assembly import Gateway
from app.config import Settings
from app.db.engine import OPERATOR_ROLE, Database, DatabaseLimits, open_database
from app.embedded.loopback import free_port
from app.kit.errors import DatabaseUnavailable
from app.main import build_app
from app.wallets.funding import FundingService
from app.wallets.read_access import read_access_header
from ledger.accounts import wallet_account
from ledger.money import Nano
from tests.integration.gateway.conftest import (
    Seller,
    Wallet,
    gateway_settings,
    price_market,
    read_access,
)
from tests.integration.gateway.test_malformed_requests import acceptance


@pytest.fixture(autouse=True)
async def _market(gateway: Gateway, seller: Seller, wallet: Wallet) -> None:
    seller.offer(4)
    await price_market(gateway)
    operators = open_database(gateway.settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    await FundingService(operators, gateway.settings).fund(wallet.address, Nano(10**9))
    await operators.dispose()


class LosesAnAnswer:
    """A database that commits once and then says that the connection is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.losses = 1

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[AsyncConnection]:
        async with self._database.statement() as tx:
            yield tx
        if self.losses:
            self.losses -= 1
            raise DatabaseUnavailable("connection lost")


async def test_a_lone_acceptance_whose_commit_was_not_heard_of_is_looked_up_not_failed(
    client: httpx.AsyncClient, gateway: Gateway, wallet: Wallet, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = LosesAnAnswer(gateway.database)
    monkeypatch.setattr(gateway.admission, "_database", database)
    body = await acceptance(client, gateway, wallet)
    answer = await client.post("/v1/requests", json=body, headers={"prefer": "wait=0"})
    assert answer.status_code == 202, answer.text
    assert database.losses == 0
    again = await client.post("/v1/requests", json=body, headers={"prefer": "respond-async"})
    assert again.json()["id"] == answer.json()["id"]


async def test_a_wallet_that_stays_locked_is_a_typed_503_and_the_same_acceptance_works_later(
    client: httpx.AsyncClient,
    gateway: Gateway,
    settings: Settings,
    wallet: Wallet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = settings.database_url.get_secret_value()
    impatient = open_database(url, pool_size=2, limits=DatabaseLimits(lock=0.05))
    monkeypatch.setattr(gateway.admission, "_database", impatient)
    body = await acceptance(client, gateway, wallet)
    with psycopg.connect(url) as owner:
        owner.execute(
            "SELECT FROM offpeak.wallet_balance WHERE account_id = %s FOR UPDATE",
            (wallet_account(wallet.address, gateway.token),),
        )
        refused = await client.post("/v1/requests", json=body)
        assert (refused.status_code, refused.json()["code"]) == (503, "database-conflict")
        assert refused.headers["retry-after"] == "1"
    taken = await client.post("/v1/requests", json=body, headers={"prefer": "wait=0"})
    assert taken.status_code == 202
    await impatient.dispose()


async def test_a_gateway_without_its_database_answers_a_typed_503_and_is_not_ready(
    wallet: Wallet,
) -> None:
    nowhere = gateway_settings(f"postgresql://nobody@127.0.0.1:{free_port()}/none", None)
    app = build_app(nowhere)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        ready = await client.get("/readyz")
        access = read_access(wallet, scope="balances", valid_until=int(time.time()) + 60)
        header = read_access_header(access, wallet.key.sign(access.digest(app.state.domain)))
        refused = await client.get("/v1/balances", headers={"authorization": header})
    assert ready.status_code == 503
    assert (refused.status_code, refused.json()["code"]) == (503, "database-unavailable")
    assert refused.headers["retry-after"] == "2"


@pytest.mark.parametrize("cut", [False, True])
async def test_a_statement_ends_in_time_and_a_cut_connection_is_replaced(
    settings: Settings, *, cut: bool
) -> None:
    url = settings.database_url.get_secret_value()
    database = open_database(url, pool_size=1, limits=DatabaseLimits(statement=0.2))
    with pytest.raises(DatabaseUnavailable):
        await sleep_in(database, cut_by=url if cut else None)
    async with database.transaction() as tx:  # the pool has healed
        assert await tx.scalar(text("SELECT 1")) == 1
    await database.dispose()


async def sleep_in(database: Database, *, cut_by: str | None) -> None:
    """Sleep for long in a transaction, perhaps after the owner has cut its connection."""
    async with database.transaction() as tx:
        if cut_by:
            backend = await tx.scalar(text("SELECT pg_backend_pid()"))
            with psycopg.connect(cut_by) as owner:
                owner.execute("SELECT pg_terminate_backend(%s)", (backend,))
        await tx.execute(text("SELECT pg_sleep(30)"))
