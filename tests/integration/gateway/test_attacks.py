"""Signed figures and headers at the edge of what anything can hold are typed refusals."""

import dataclasses

import httpx
import pytest

from app.assembly import Gateway
from ledger.authorization import RequestAuthorization
from tests.integration.gateway.conftest import Seller, Wallet, price_market
from tests.integration.gateway.test_malformed_requests import acceptance

UINT64_MAX = 2**64 - 1


@pytest.fixture(autouse=True)
async def _market(gateway: Gateway, seller: Seller) -> None:
    seller.offer(4)
    await price_market(gateway)


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ({"valid_after": UINT64_MAX}, "authorization-not-yet-valid"),
        ({"deadline": 0}, "authorization-expired"),
        ({"deadline": UINT64_MAX}, "insufficient-funds"),
    ],
)
async def test_a_signed_time_may_be_any_uint64(
    client: httpx.AsyncClient,
    gateway: Gateway,
    wallet: Wallet,
    times: dict[str, int],
    code: str,
) -> None:
    body = await acceptance(client, gateway, wallet)
    message = body["authorization"]
    assert isinstance(message, dict)
    changed = dataclasses.replace(RequestAuthorization.parse(message), **times)  # type: ignore[arg-type]  # times are plain integers
    body["authorization"] = changed.message()
    body["signature"] = "0x" + wallet.key.sign(changed.digest(gateway.domain)).hex()

    response = await client.post("/v1/requests", json=body)

    assert response.json()["code"] == code


@pytest.mark.parametrize("given", ["0000000000999999", "0" * 5_000, "9" * 5_000, "\xb2"])
async def test_a_wait_is_a_short_number_within_the_limit(
    client: httpx.AsyncClient, given: str
) -> None:
    response = await client.post(
        "/v1/requests", json={}, headers={b"Prefer": f"wait={given}".encode("latin-1")}
    )

    assert (response.status_code, response.json()["code"]) == (422, "bad-prefer")
