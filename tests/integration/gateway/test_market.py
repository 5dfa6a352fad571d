"""Price points and the market's view on real Postgres."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import httpx
import psycopg
import pytest

from app.assembly import Gateway, build_price_point_loop
from app.capacity.loop import PricePointLoop
from app.capacity.placement import FRESH
from app.capacity.repository import PRICE_POINT_LOCK
from ledger.money import parse_amount
from pricing.curve import DEFAULT_CURVE
from pricing.errors import RunTooLong
from tests.integration.gateway.conftest import (
    MODEL,
    REGION,
    Seller,
    authorize_seller,
    price_market,
)
from tests.waiting import wait_until


@pytest.fixture
def point_loop(gateway: Gateway) -> PricePointLoop:
    return build_price_point_loop(gateway.settings, gateway.database)


@pytest.fixture(autouse=True)
def _empty_market(database_url: str) -> None:
    """Agents of earlier tests are gone."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.agent_session SET state = 'offline'")
        connection.execute("DELETE FROM offpeak.capacity_event")
        connection.execute("DELETE FROM offpeak.price_point")


def rows(database_url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


async def test_models_and_capacity_can_be_looked_at_before_buying(
    client: httpx.AsyncClient, gateway: Gateway, seller: Seller
) -> None:
    seller.offer(4)
    await price_market(gateway)
    [model] = (await client.get("/v1/models")).json()["models"]
    assert (model["id"], model["licence"], model["context_tokens"]) == (MODEL, "Apache-2.0", 2_048)
    [region] = model["regions"]
    assert (region["region"], region["available"]) == (REGION, True)
    assert all(parse_amount(rate) > 0 for rate in region["rates"].values())
    [market] = (await client.get("/v1/capacity")).json()["capacity"]
    assert (market["offered"], market["occupied"], market["load"]) == (4, 0, "0.000000")
    assert market["gpu_activity"] == "0.400000"
    assert market["price_point"]["curve_version"] == DEFAULT_CURVE.version


async def test_a_model_that_nobody_serves_is_listed_without_rates(
    client: httpx.AsyncClient, gateway: Gateway
) -> None:
    await price_market(gateway)
    [model] = (await client.get("/v1/models")).json()["models"]
    assert model["regions"] == []


async def test_load_is_the_occupied_share_of_the_last_minute(
    database_url: str, gateway: Gateway, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.capacity_event SET at = at - interval '2 minutes'")
        connection.execute("UPDATE offpeak.capacity_event SET occupied = 1")
    assert await point_loop.run_once(monotonic=0) == 1
    assert rows(database_url, "SELECT load_ppm FROM offpeak.price_point") == [(250_000,)]


async def test_gpu_activity_never_moves_a_price(
    database_url: str, gateway: Gateway, seller: Seller
) -> None:
    seller.offer(4)
    await price_market(gateway)
    before = gateway.market.price(MODEL, region=REGION).rates
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.deployment SET gpu_activity_ppm = 1000000")
    await price_market(gateway)
    assert gateway.market.price(MODEL, region=REGION).rates == before


async def test_one_second_has_one_price_point_whoever_writes(
    database_url: str, gateway: Gateway, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    await asyncio.gather(*(point_loop.run_once(monotonic=0) for _ in range(8)))
    found = rows(database_url, "SELECT count(*), count(DISTINCT at) FROM offpeak.price_point")
    assert found[0][0] == found[0][1]


async def test_two_publishers_never_overwrite_one_load_value(
    database_url: str, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (PRICE_POINT_LOCK,))
        assert await point_loop.run_once(monotonic=0) == 0
    assert await point_loop.run_once(monotonic=0) == 1


async def test_a_silent_agent_leaves_the_market_fifteen_seconds_after_it_was_seen(
    database_url: str, gateway: Gateway, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE offpeak.agent_session SET seen_at = now() - interval '20 s'"
            " WHERE state = 'online'"
        )
        connection.execute("UPDATE offpeak.capacity_event SET at = at - interval '1 minute'")
    await point_loop.run_once(monotonic=0)
    [(gone,)] = rows(
        database_url,
        "SELECT e.at - s.seen_at FROM offpeak.capacity_event e"
        " JOIN offpeak.deployment d ON d.id = e.deployment_id"
        " JOIN offpeak.agent_session s ON s.agent_id = d.agent_id"
        " WHERE e.offered = 0 AND s.stale",
    )
    assert gone == timedelta(seconds=15)
    await gateway.market_loop.run_once()
    assert all(market.offer is None for market in gateway.market.snapshot().markets)


async def test_offers_that_the_price_covers_add_up_and_dearer_ones_are_no_market(
    database_url: str, gateway: Gateway, seller: Seller
) -> None:
    seller.offer(4, ask=1_000)
    authorize_seller(database_url).offer(2, ask=1_500)
    authorize_seller(database_url).offer(9, ask=1_000_000)
    await price_market(gateway)
    [market] = gateway.market.snapshot().markets
    assert market.offer
    assert (market.offer.deployments, market.offer.offered) == (2, 6)
    assert market.offer.dearest_ask == 1_500


async def test_the_quoted_price_covers_what_the_prior_supplier_asks(
    gateway: Gateway, seller: Seller
) -> None:
    seller.offer(4)
    await price_market(gateway)
    assert gateway.market.price(MODEL, region=None).ask >= parse_amount(gateway.settings.prior_ask)


LAST_EVENT = (
    "SELECT e.offered FROM offpeak.capacity_event e JOIN offpeak.deployment d"
    " ON d.id = e.deployment_id JOIN offpeak.agent_session s ON s.agent_id = d.agent_id"
    " WHERE s.state = 'online' ORDER BY e.at DESC, e.id DESC LIMIT 1"
)
SILENCE = (
    "UPDATE offpeak.agent_session SET seen_at = now() - interval '20 s' WHERE state = 'online'"
)


async def test_what_happened_after_an_agent_fell_silent_does_not_bring_its_offer_back(
    database_url: str, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SILENCE)
        connection.execute("UPDATE offpeak.capacity_event SET at = now() - interval '1 s'")
    await point_loop.run_once(monotonic=0)
    assert rows(database_url, LAST_EVENT) == [(0,)]


async def test_an_agent_that_comes_back_is_counted_after_what_it_had_to_wait_for(
    database_url: str, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SILENCE)
    await point_loop.run_once(monotonic=0)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM offpeak.deployment FOR NO KEY UPDATE")
        beat = asyncio.create_task(asyncio.to_thread(seller.heartbeat))
        await asyncio.to_thread(wait_until, lambda: waiting_for_a_lock(database_url))
        other.execute(
            "INSERT INTO offpeak.capacity_event(deployment_id, release, region, at, offered,"
            " occupied) SELECT id, release, region, clock_timestamp(), 0, 0 FROM offpeak.deployment"
            " WHERE agent_id = %s",
            (seller.agent,),
        )
    await beat
    assert rows(database_url, LAST_EVENT) == [(4,)]


def waiting_for_a_lock(database_url: str) -> bool:
    """Whether some connection waits for a row that another holds."""
    found = rows(
        database_url,
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    return found != [(0,)]


async def test_only_offers_that_the_floor_covers_make_the_load(
    database_url: str, gateway: Gateway, seller: Seller, point_loop: PricePointLoop
) -> None:
    seller.offer(4)
    authorize_seller(database_url).offer(96, ask=1_000_000)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.capacity_event SET at = at - interval '2 minutes'")
        connection.execute("UPDATE offpeak.capacity_event SET occupied = 1 WHERE offered = 4")
    assert await point_loop.run_once(monotonic=0) == 1
    assert rows(database_url, "SELECT load_ppm FROM offpeak.price_point") == [(250_000,)]


def test_freshness_is_one_figure(database_url: str) -> None:
    assert rows(database_url, "SELECT offpeak._fresh_for()") == [(FRESH,)]


async def test_one_supplier_that_calls_itself_slow_makes_no_request_too_long_to_sell(
    gateway: Gateway, seller: Seller
) -> None:
    """One offer at a token a second refused every buyer a ceiling above about 190 tokens."""
    seller.offer(4)
    await price_market(gateway)
    price = gateway.market.price(MODEL, region=None)
    limit = gateway.settings.run_seconds_max
    for speed in (1, 5, 20):
        slow = replace(price.market.offer, slowest_prefill=speed, slowest_decode=speed)
        market = replace(price.market, offer=slow)
        assert gateway.market.run_seconds(market, 100, 1_000, limit_seconds=limit) <= limit
        with pytest.raises(RunTooLong):
            gateway.market.run_seconds(market, 100, 100_000, limit_seconds=limit)
