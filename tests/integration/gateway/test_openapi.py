"""The OpenAPI document is complete and true."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.routing import Route

from app.assembly import Gateway
from app.main import build_app
from tests.integration.gateway.conftest import authorize_seller, gateway_settings, price_market
from tests.waiting import wait_until

CONFIG = Path(__file__).parents[2] / "schemathesis.toml"
MOST_SECONDS = 15


@pytest.fixture(scope="module")
def served_url(database_url: str, redis_url: str) -> Iterator[str]:
    """A gateway behind a real HTTP server, with slots on offer and a price that stays good."""
    app = build_app(gateway_settings(database_url, redis_url, port=0, price_stale_seconds=3_600))
    authorize_seller(database_url).offer(4)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.agent_session SET seen_at = now() + interval '1 hour'")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


async def test_every_route_is_in_the_document(app: FastAPI, client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    served = {route.path for route in app.routes if isinstance(route, Route)} - {"/openapi.json"}
    assert set(document["paths"]) >= {"/v1/quotes", "/v1/balances", "/v1/models", "/readyz"}
    assert document["servers"] == [{"url": "http://127.0.0.1:8700"}]
    assert served <= set(document["paths"])
    assert document["paths"]["/v1/balances"]["get"]["security"] == [{"OffpeakRead": []}]


def test_the_served_routes_do_what_the_document_says(
    served_url: str, database_url: str, tmp_path: Path
) -> None:
    async def priced() -> None:
        app = build_app(gateway_settings(database_url, None))
        gateway = app.state.gateway
        assert isinstance(gateway, Gateway)
        await price_market(gateway)
        await gateway.database.dispose()

    asyncio.run(priced())
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            f"--config-file={CONFIG}",
            "run",
            f"{served_url}/openapi.json",
            f"--max-time={MOST_SECONDS}",
            "--checks=all",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
