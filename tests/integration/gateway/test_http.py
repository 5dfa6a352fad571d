"""What holds for every route: problems, ids, probes, metrics, logs."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import psycopg
import pytest
import structlog
from fastapi import FastAPI

from app.assembly import Gateway
from app.db.migrate import functions_digest
from app.kit.log import configure_logging
from app.main import build_app
from app.wallets.read_access import read_access_header
from ledger.encoding import checksum_address
from tests.integration.gateway.conftest import (
    Seller,
    Wallet,
    gateway_settings,
    price_market,
    quote_body,
    read_access,
)


async def test_an_unknown_route_and_a_wrong_method_are_problems_too(
    client: httpx.AsyncClient,
) -> None:
    for method, path, status, code in (
        ("GET", "/v1/nothing", 404, "unknown-route"),
        ("GET", "/v1/quotes", 405, "method-not-allowed"),
        ("DELETE", "/v1/models", 405, "method-not-allowed"),
        ("GET", "/v1/models/", 404, "unknown-route"),
    ):
        answer = await client.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json() == answer.json() | {"code": code, "instance": path, "status": status}


async def test_a_bug_is_a_problem_that_tells_nothing(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise ValueError("a secret detail")

    answer = await client.get("/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert "secret" not in answer.text


async def test_a_request_has_an_id_and_keeps_a_good_one_of_the_callers(
    client: httpx.AsyncClient,
) -> None:
    own = await client.get("/healthz", headers={"x-request-id": "my-request-1"})
    assert own.headers["x-request-id"] == "my-request-1"
    bad = await client.get("/healthz", headers={"x-request-id": "a b\tc"})
    assert len(bad.headers["x-request-id"]) == 32


async def test_ready_with_everything_there(client: httpx.AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ready",
        "checks": {"database": "ok", "keys": "ok", "valkey": "ok"},
    }


async def probe(database_url: str, redis_url: str | None) -> httpx.Response:
    app = build_app(gateway_settings(database_url, redis_url))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        answer = await client.get("/readyz")
    found = app.state.gateway
    assert isinstance(found, Gateway)
    await found.database.dispose()
    if found.valkey is not None:
        await found.valkey.aclose()
    return answer


async def test_without_valkey_the_gateway_is_degraded_but_ready(database_url: str) -> None:
    for url in (None, "redis://127.0.0.1:1/0"):
        answer = await probe(database_url, url)
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")


async def test_without_a_database_or_its_schema_the_gateway_is_not_ready(
    database_url: str, redis_url: str
) -> None:
    away = await probe("postgresql://nobody:x@127.0.0.1:1/none", redis_url)
    assert (away.status_code, away.json()["status"]) == (503, "not-ready")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.schema_functions SET digest = 'older'")
        older = await probe(database_url, redis_url)
        assert older.status_code == 503
        assert "offpeak migrate" in older.json()["checks"]["database"]
        connection.execute("UPDATE offpeak.schema_functions SET digest = %s", (functions_digest(),))


async def test_metrics_name_routes_and_codes_but_no_wallet_or_job(
    client: httpx.AsyncClient, gateway: Gateway, seller: Seller, wallet: Wallet
) -> None:
    seller.offer(4)
    await price_market(gateway)
    found = (await client.post("/v1/quotes", json=quote_body(wallet))).json()
    await client.post("/v1/quotes", json={})
    await client.get("/v1/nothing/" + found["id"])
    text = (await client.get("/metrics")).text
    assert 'offpeak_http_requests_total{method="POST",route="/v1/quotes",status="200"} 1.0' in text
    assert 'offpeak_refusals_total{code="malformed-request"} 1.0' in text
    for secret in (wallet.address[2:], checksum_address(wallet.address)[2:], found["id"][6:]):
        assert secret not in text


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    configure_logging(stream=stream)
    yield stream
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


async def test_the_access_log_has_route_and_status_and_no_content(
    client: httpx.AsyncClient,
    gateway: Gateway,
    seller: Seller,
    wallet: Wallet,
    log_lines: io.StringIO,
) -> None:
    seller.offer(4)
    await price_market(gateway)
    answer = await client.post("/v1/quotes", json=quote_body(wallet, "my secret question"))
    access = read_access(wallet, scope="balances", valid_until=answer_time(answer) + 60)
    header = read_access_header(access, wallet.key.sign(access.digest(gateway.domain)))
    await client.get("/v1/balances", headers={"Authorization": header})
    text = log_lines.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["route"], line["status"]) for line in requests] == [
        ("/v1/quotes", 200),
        ("/v1/balances", 200),
    ]
    assert requests[0]["request_id"] == answer.headers["x-request-id"]
    signature = answer.json()["signature"][2:]
    for secret in ("my secret question", signature, header.partition(" ")[2], wallet.address[2:]):
        assert secret not in text.lower()


def answer_time(answer: httpx.Response) -> int:
    return int(answer.json()["quote"]["issuedAt"])


async def test_a_wallet_never_seen_has_nothing_in_any_bucket(
    client: httpx.AsyncClient, gateway: Gateway, wallet: Wallet
) -> None:
    access = read_access(
        wallet, scope="balances", valid_until=int(datetime.now(UTC).timestamp()) + 60
    )
    header = read_access_header(access, wallet.key.sign(access.digest(gateway.domain)))
    answer = await client.get("/v1/balances", headers={"Authorization": header})
    assert answer.status_code == 200
    found = answer.json()
    assert found.pop("as_of").endswith("Z")
    assert found == {
        "payer": checksum_address(wallet.address),
        "asset": checksum_address(gateway.token),
        "available": "0.000000000",
        "held": "0.000000000",
        "pending": "0.000000000",
        "withdrawing": "0.000000000",
        "exiting": "0.000000000",
        "unaccounted": "0.000000000",
        "owed": "0.000000000",
        "deposits": [],
        "withdrawals": [],
        "exit": None,
        "transfers": [],
        "next_steps": {},
    }


async def test_available_and_held_are_shown_apart(
    client: httpx.AsyncClient, database_url: str, gateway: Gateway, wallet: Wallet
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "WITH a AS (INSERT INTO offpeak.account(id, owner, asset, kind)"
            " VALUES (gen_random_uuid(), %s, %s, 'wallet') RETURNING id)"
            " INSERT INTO offpeak.wallet_balance(account_id, available, held, open_jobs)"
            " SELECT id, 5, 14250, 1 FROM a",
            (wallet.address, gateway.token),
        )
    access = read_access(
        wallet, scope="balances", valid_until=int(datetime.now(UTC).timestamp()) + 60
    )
    header = read_access_header(access, wallet.key.sign(access.digest(gateway.domain)))
    found = (await client.get("/v1/balances", headers={"Authorization": header})).json()
    assert (found["available"], found["held"]) == ("0.000000005", "0.000014250")


async def test_balances_without_a_signature_are_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/balances")
    assert answer.status_code == 401
    assert answer.json()["code"] == "read-access-missing"
    assert answer.headers["WWW-Authenticate"] == "OffpeakRead"
