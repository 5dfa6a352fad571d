"""Quotes over HTTP on real Postgres."""

import time

import httpx
import psycopg
import pytest

from app.assembly import Gateway
from app.config import Settings
from app.quotes.quote import Presented, check_acceptance, check_quote
from ledger.authorization import RequestAuthorization
from ledger.encoding import canonical_json
from ledger.money import parse_amount
from ledger.quote import Quote
from tests.integration.gateway.conftest import (
    MODEL,
    Seller,
    Wallet,
    price_market,
    quote_body,
)


@pytest.fixture(autouse=True)
async def _market(gateway: Gateway, seller: Seller) -> None:
    seller.offer(4)
    await price_market(gateway)


async def test_a_quote_is_signed_and_fixes_everything(
    client: httpx.AsyncClient, gateway: Gateway, wallet: Wallet
) -> None:
    body = quote_body(wallet, temperature=0.5, stop=["###"])
    answer = await client.post("/v1/quotes", json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    quote = Quote.parse(found["quote"])
    signature = bytes.fromhex(found["signature"][2:])
    digest = check_quote(quote, signature, gateway.quotes.key)
    assert found["digest"] == "0x" + digest.hex()
    assert quote.payer == wallet.address
    assert quote.model == MODEL
    assert quote.input_tokens > 0
    assert quote.expires_at - quote.issued_at == 60
    assert abs(quote.issued_at - time.time()) < 5
    assert quote.max_charge_nano == parse_amount(found["price"]["max_charge"]) > 0
    assert quote.ask_nano >= 1_000
    assert quote.run_seconds >= 20
    assert found["price"]["load"] == "0.000000"
    for name, rate in found["price"]["rates"].items():
        assert parse_amount(rate) >= parse_amount(found["price"]["floor"][name])


async def test_the_returned_authorization_is_ready_to_sign_and_passes_every_check(
    client: httpx.AsyncClient, gateway: Gateway, wallet: Wallet
) -> None:
    body = quote_body(wallet)
    found = (await client.post("/v1/quotes", json=body)).json()
    authorization = RequestAuthorization.parse(found["authorization"]["message"])
    presented = Presented(
        quote=Quote.parse(found["quote"]),
        quote_signature=bytes.fromhex(found["signature"][2:]),
        request_canonical=canonical_json(body["request"]),
        salt=b"\x5a" * 32,
        authorization=authorization,
        signature=wallet.key.sign(authorization.digest(gateway.domain)),
    )
    checked = check_acceptance(presented, gateway.quotes.key)
    assert "0x" + checked.quote_digest.hex() == found["digest"]


async def test_a_quote_writes_nothing(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet
) -> None:
    def written() -> tuple[object, ...]:
        with psycopg.connect(settings.database_url.get_secret_value()) as connection:
            row = connection.execute(
                "SELECT (SELECT count(*) FROM offpeak.account),"
                " (SELECT count(*) FROM offpeak.request_authorization),"
                " (SELECT count(*) FROM offpeak.job), (SELECT count(*) FROM offpeak.hold)"
            ).fetchone()
            assert row
            return tuple(row)

    before = written()
    assert (await client.post("/v1/quotes", json=quote_body(wallet))).status_code == 200
    assert written() == before


async def test_prompt_and_ceiling_beyond_the_context_are_refused_with_both_numbers(
    client: httpx.AsyncClient, wallet: Wallet
) -> None:
    answer = await client.post("/v1/quotes", json=quote_body(wallet, max_output_tokens=2_048))
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "context-exceeded"
    assert problem["max_output_tokens"] == 2_048
    assert problem["context_tokens"] == 2_048
    assert str(problem["input_tokens"]) in problem["detail"]


async def test_without_a_fresh_slot_there_is_no_capacity(
    client: httpx.AsyncClient, gateway: Gateway, seller: Seller, wallet: Wallet
) -> None:
    with psycopg.connect(seller.database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.agent_session SET state = 'offline'")
    await price_market(gateway)
    answer = await client.post("/v1/quotes", json=quote_body(wallet))
    assert answer.status_code == 503
    assert answer.json()["code"] == "no-capacity"
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["content-type"] == "application/problem+json"


async def test_an_unknown_model_and_an_unserved_region_are_told_apart(
    client: httpx.AsyncClient, wallet: Wallet
) -> None:
    unknown = await client.post("/v1/quotes", json=quote_body(wallet, model="gpt-4"))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown-model")
    elsewhere = await client.post("/v1/quotes", json={**quote_body(wallet), "region": "mars"})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (503, "no-capacity")


async def test_a_prompt_counted_in_a_thread_is_priced_the_same_way(
    client: httpx.AsyncClient, wallet: Wallet
) -> None:
    answer = await client.post("/v1/quotes", json=quote_body(wallet, "word " * 4_500))
    assert answer.status_code == 422
    assert answer.json()["code"] == "context-exceeded"
    assert answer.json()["input_tokens"] > 4_500


async def test_asks_that_no_price_covers_are_no_capacity_and_the_refusal_says_so(
    client: httpx.AsyncClient, gateway: Gateway, seller: Seller, wallet: Wallet
) -> None:
    with psycopg.connect(seller.database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.agent_session SET state = 'offline'")
        connection.execute(
            "UPDATE offpeak.agent_session SET state = 'online' WHERE agent_id = %s",
            (seller.agent,),
        )
    seller.offer(4, ask=1_000_000)
    await price_market(gateway)
    answer = await client.post("/v1/quotes", json=quote_body(wallet))
    assert (answer.status_code, answer.json()["code"]) == (503, "no-capacity")
    assert answer.json()["too_dear"] == 1
    assert "ask for more" in answer.json()["detail"]


async def test_a_price_that_covers_no_suppliers_ask_is_not_quoted(
    client: httpx.AsyncClient, gateway: Gateway, wallet: Wallet, database_url: str
) -> None:
    for ask, status in ((10**6, 503), (1_000, 200)):
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("UPDATE offpeak.deployment SET ask = %s", (ask,))
        await price_market(gateway)
        answer = await client.post("/v1/quotes", json=quote_body(wallet))
        assert answer.status_code == status, answer.text
        assert answer.json().get("code", "no-capacity") == "no-capacity"


async def test_a_quotes_ask_comes_from_its_price_point_whatever_has_been_booked_since(
    client: httpx.AsyncClient, gateway: Gateway, seller: Seller, wallet: Wallet, database_url: str
) -> None:
    seller.offer(4)
    await price_market(gateway)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.price_point SET floor_ask = 7654")
    await gateway.market_loop.run_once()
    document = (await client.post("/v1/quotes", json=quote_body(wallet))).json()
    assert document["quote"]["askNano"] == "7654"
