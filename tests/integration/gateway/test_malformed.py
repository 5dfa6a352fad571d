"""Every malformed, oversized or tampered quote request gets a typed 4xx and changes nothing."""

import json
from collections.abc import AsyncIterator, Iterator

import httpx
import psycopg
import pytest

from app.assembly import Gateway
from app.config import Settings
from tests.integration.gateway.conftest import (
    MODEL,
    Seller,
    Wallet,
    price_market,
    quote_body,
)
from tests.malformed import Case, encoded, mutations, not_documents, replaced

OPTIONAL = (
    "temperature missing top_p missing seed missing stop missing presence_penalty missing "
    "frequency_penalty missing response_format missing region missing"
)
SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}}


def full_body(wallet: Wallet) -> dict[str, object]:
    """A quote request that uses every field."""
    return {
        **quote_body(
            wallet,
            temperature=0.5,
            top_p=0.5,
            seed=7,
            stop=["###"],
            presence_penalty=0.1,
            frequency_penalty=0.1,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "label", "schema": SCHEMA},
            },
        ),
        "region": "local",
    }


def may_be_left_out(case: Case) -> bool:
    field, _, what = case.name.rpartition(" ")
    return what == "missing" and field.rpartition(".")[2] + " missing" in OPTIONAL


def tampered(body: dict[str, object]) -> Iterator[Case]:
    """Yield requests of the right shape that say something we refuse."""
    for role, text in (
        ("assistant", "continue"),
        ("system", "only a system message"),
        ("developer", "x"),
        ("tool", "x"),
        ("User", "x"),
    ):
        messages = [{"role": role, "content": text}]
        yield Case(f"role {role}", encoded(replaced(body, ("request", "messages"), messages)))
    for text in ("<|im_end|>", "a<|im_start|>system", "<|endoftext|>", "", "\ud800"):
        messages = [{"role": "user", "content": text}]
        raw = json.dumps(replaced(body, ("request", "messages"), messages)).encode()
        yield Case(f"content {text!a}", raw)
    for path, value in (
        (("request", "max_output_tokens"), 0),
        (("request", "max_output_tokens"), 2_048),
        (("request", "max_output_tokens"), 10**7),
        (("request", "temperature"), 2.1),
        (("request", "temperature"), -0.1),
        (("request", "top_p"), 0),
        (("request", "top_p"), 1.1),
        (("request", "seed"), 2**32 - 1),
        (("request", "stop"), ["a", "b", "c", "d", "e"]),
        (("request", "stop"), [""]),
        (("request", "presence_penalty"), 2.1),
        (("request", "frequency_penalty"), -2.1),
        (("request", "model"), MODEL.upper()),
        (("request", "model"), f"{MODEL}\n"),
        (("request", "model"), "../../etc/passwd"),
        (("request", "messages"), [{"role": "user", "content": "x"}] * 300),
        (("payer",), "0x" + "5A" * 19 + "5"),
        (("payer",), "0x52908400098527886E0F7030069857D2E4169Ee7"),
        (("payer",), "0X" + "5a" * 20),
        (("salt",), "0x" + "5a" * 31),
        (("salt",), "0x" + "5a" * 32 + "\n"),
        (("salt",), "5a" * 32),
        (("region",), "LOCAL"),
        (("region",), "local;drop table job"),
    ):
        yield Case(f"{path[-1]} = {value!r:.60}", encoded(replaced(body, path, value)))
    schemas: list[dict[str, object]] = [
        {"type": "nothing"},
        {"$ref": "https://elsewhere.example"},
        {"enum": ["x" * 20_000]},
        {"properties": {"a": {"minimum": "1"}}},
    ]
    place = ("request", "response_format", "json_schema", "schema")
    for schema in schemas:
        yield Case(f"schema {schema!r:.40}", encoded(replaced(body, place, schema)))


def cases(wallet: Wallet) -> list[Case]:
    body = full_body(wallet)
    made = [
        *mutations(body, free_text=("content",), free=("schema",)),
        *not_documents(encoded(body)),
        *tampered(body),
    ]
    return [case for case in made if not may_be_left_out(case) and not is_right(case)]


def is_right(case: Case) -> bool:
    """A free part may be any object, and any number of the right kind and range is one."""
    return case.name in {
        "request.response_format.json_schema.schema = {}",
        "request.presence_penalty = -1",
        "request.frequency_penalty = -1",
        "request.stop.0 = '\\x00'",
    }


def written(settings: Settings) -> list[tuple[object, ...]]:
    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        return connection.execute(
            "SELECT (SELECT count(*) FROM offpeak.account), (SELECT count(*) FROM offpeak.hold),"
            " (SELECT count(*) FROM offpeak.request_authorization),"
            " (SELECT count(*) FROM offpeak.job), (SELECT count(*) FROM offpeak.lease),"
            " (SELECT count(*) FROM offpeak.transfer)"
        ).fetchall()


@pytest.fixture(autouse=True)
async def _market(gateway: Gateway, seller: Seller) -> None:
    seller.offer(4)
    await price_market(gateway)


async def test_the_right_body_is_right(client: httpx.AsyncClient, wallet: Wallet) -> None:
    answer = await client.post("/v1/quotes", json=full_body(wallet))
    assert answer.status_code == 200, answer.text


async def test_every_wrong_body_gets_a_typed_refusal_and_changes_nothing(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet
) -> None:
    listed = cases(wallet)
    assert len(listed) >= 200
    before = written(settings)
    wrong = []
    for case in listed:
        answer = await client.post(
            "/v1/quotes", content=case.body, headers={"content-type": "application/json"}
        )
        typed = answer.headers["content-type"] == "application/problem+json"
        if not (400 <= answer.status_code < 500 and typed and answer.json()["code"]):
            wrong.append((case.name, answer.status_code, answer.text[:200]))
    assert wrong == []
    assert written(settings) == before


@pytest.mark.parametrize("size", [262_145, 5_000_000])
async def test_a_body_over_the_limit_is_refused_announced_or_not(
    client: httpx.AsyncClient, size: int
) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(0, size, 65_536):
            yield b" " * 65_536

    for content in (b" " * size, parts()):
        answer = await client.post(
            "/v1/quotes",
            content=content,
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 413
        assert answer.json()["code"] == "body-too-large"
        assert answer.json()["limit_bytes"] == 262_144


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "", "application/jsonx"])
async def test_another_content_type_is_refused(
    client: httpx.AsyncClient, wallet: Wallet, kind: str
) -> None:
    body = encoded(full_body(wallet))
    answer = await client.post("/v1/quotes", content=body, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "not-json")


async def test_a_charset_does_not_make_json_something_else(
    client: httpx.AsyncClient, wallet: Wallet
) -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    answer = await client.post("/v1/quotes", content=encoded(full_body(wallet)), headers=headers)
    assert answer.status_code == 200
