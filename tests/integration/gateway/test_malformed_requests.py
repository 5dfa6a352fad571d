"""Every malformed or tampered acceptance gets a typed 4xx and changes nothing."""

from collections.abc import Iterator

import httpx
import pytest

from app.assembly import Gateway
from app.config import Settings
from ledger.authorization import RequestAuthorization
from tests.integration.gateway.conftest import Seller, Wallet, price_market, quote_body
from tests.integration.gateway.test_malformed import written
from tests.malformed import Case, at, encoded, mutations, not_documents, replaced


@pytest.fixture(autouse=True)
async def _market(gateway: Gateway, seller: Seller) -> None:
    seller.offer(4)
    await price_market(gateway)


async def acceptance(
    client: httpx.AsyncClient, gateway: Gateway, wallet: Wallet
) -> dict[str, object]:
    """A complete, rightly signed acceptance."""
    asked = quote_body(wallet, temperature=0.5)
    found = (await client.post("/v1/quotes", json=asked)).json()
    message = found["authorization"]["message"]
    digest = RequestAuthorization.parse(message).digest(gateway.domain)
    return {
        "quote": found["quote"],
        "quote_signature": found["signature"],
        "request": asked["request"],
        "salt": asked["salt"],
        "authorization": message,
        "signature": "0x" + wallet.key.sign(digest).hex(),
    }


def tampered(body: dict[str, object]) -> Iterator[Case]:
    """Yield acceptances of the right shape in which one figure or one digit is another."""
    for part in ("quote", "authorization"):
        message = body[part]
        assert isinstance(message, dict)
        for name in message:
            value = at(body, (part, name))
            assert isinstance(value, str)
            last = "1" if value[-1] != "1" else "2"
            changed = replaced(body, (part, name), value[:-1] + last)
            yield Case(f"{part}.{name} by a digit", encoded(changed))
            yield Case(
                f"{part}.{name} with a space", encoded(replaced(body, (part, name), f"{value} "))
            )
            yield Case(f"{part}.{name} twice", encoded(replaced(body, (part, name), value * 2)))
    for name in ("signature", "quote_signature", "salt"):
        value = at(body, (name,))
        assert isinstance(value, str)
        for place in (3, 40, len(value) - 1):
            digit = "1" if value[place] != "1" else "2"
            changed = replaced(body, (name,), value[:place] + digit + value[place + 1 :])
            yield Case(f"{name} digit {place}", encoded(changed))
    for path, wrong in (
        (("request", "max_output_tokens"), 65),
        (("request", "temperature"), 0.6),
        (("request", "messages", 0, "content"), "Say goodbye."),
    ):
        yield Case(f"{path} changed", encoded(replaced(body, path, wrong)))


async def test_every_wrong_acceptance_gets_a_typed_refusal_and_changes_nothing(
    client: httpx.AsyncClient, gateway: Gateway, settings: Settings, wallet: Wallet
) -> None:
    body = await acceptance(client, gateway, wallet)
    listed = [*mutations(body), *not_documents(encoded(body)), *tampered(body)]
    assert len(listed) >= 200
    before = written(settings)
    wrong = []
    for case in listed:
        answer = await client.post(
            "/v1/requests", content=case.body, headers={"content-type": "application/json"}
        )
        typed = answer.headers["content-type"] == "application/problem+json"
        refused = 400 <= answer.status_code < 500 and typed
        # without funds the right acceptance is refused too: a wrong one must never get that far
        if not refused or answer.json()["code"] == "insufficient-funds":
            wrong.append((case.name, answer.status_code, answer.text[:300]))
    assert wrong == []
    assert written(settings) == before
    right = await client.post("/v1/requests", json=body)
    assert right.json()["code"] == "insufficient-funds", right.text
