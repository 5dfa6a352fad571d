"""Withdrawals and terms over HTTP, and a whole worker that pays them."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.chain.calls import MINT, TRANSFER
from app.client.keystore import QUICK_SCRYPT, write_keystore
from app.config import Settings
from app.main import build_app
from app.wallets.read_access import read_access_header
from app.worker import build_worker
from ledger.authorization import ReadAccess, SuspenseClaim
from ledger.encoding import checksum_address
from ledger.signing import SigningKey
from tests.chain import EXIT_DELAY, OPERATOR, TEST_KEYS
from tests.integration.treasury.house import House, house

__all__ = ["house"]


def settings_of(house: House, **given: object) -> Settings:
    return Settings.model_validate(
        {
            "database_url": house.url,
            "signing_key": secrets.token_hex(32),
            "content_key": secrets.token_hex(32),
            "checkpoint_key": secrets.token_hex(32),
            "rpc_urls": house.contracts.chain.url,
            "token_address": house.contracts.token,
            "treasury_address": house.contracts.treasury,
            "receipt_anchor_address": house.contracts.anchor,
            "withdrawal_minimum": "0.5",
            **given,
        }
    )


@dataclass
class Counter:
    """A gateway's counter for withdrawals, and a wallet before it."""

    house: House
    client: httpx.AsyncClient

    async def post(self, wallet: SigningKey, amount: int, **given: Any) -> httpx.Response:
        message = self.house.message(wallet, amount, **given)
        body = {"withdrawal": message.message(), "signature": self.house.signed(wallet, message)}
        return await self.client.post("/v1/withdrawals", json=body)

    async def get(self, wallet: SigningKey, path: str, scope: str = "balances") -> httpx.Response:
        until = int(datetime.now(UTC).timestamp()) + 600
        access = ReadAccess(wallet.address, scope, until, secrets.token_bytes(32))
        signature = wallet.sign(access.digest(self.house.domain))
        header = read_access_header(access, signature)
        return await self.client.get(path, headers={"Authorization": header})


@pytest.fixture
async def counter(house: House) -> AsyncIterator[Counter]:
    app = build_app(settings_of(house))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield Counter(house, client)


async def test_the_terms_are_shown_to_anybody(counter: Counter) -> None:
    terms = (await counter.client.get("/v1/treasury")).json()
    contracts = counter.house.contracts
    assert terms == terms | {
        "chain_id": 31_337,
        "treasury": checksum_address(contracts.treasury),
        "token": checksum_address(contracts.token),
        "has_chain": True,
        "exit_delay_seconds": EXIT_DELAY,
        "withdrawal_minimum": "0.500000000",
        "withdrawal_fee": "0.000000000",
        "withdrawal_fee_base_units": "0",
    }


async def test_a_plain_transfer_is_listed_and_claimed(counter: Counter) -> None:
    house, place = counter.house, counter.house.contracts
    wallet = await house.new_wallet()
    secret = secrets.token_bytes(32)
    sender = SigningKey(secret)
    place.chain.set_gas_money(sender.address, 10**18)
    await house.act(secret, place.token, MINT.data(sender.address, 2_000_000))
    await house.act(secret, place.token, TRANSFER.data(place.treasury, 2_000_000))
    place.chain.finalize()
    await house.book()
    assert (await counter.get(wallet, "/v1/suspense")).json() == {"transfers": []}
    [shown] = (await counter.get(sender, "/v1/suspense")).json()["transfers"]
    assert (shown["state"], shown["amount"]) == ("unclaimed", "2.000000000")
    balance = (await counter.get(sender, "/v1/balances")).json()
    assert [each["id"] for each in balance["transfers"]] == [shown["id"]]
    claim = SuspenseClaim(
        payer=sender.address,
        transaction=bytes.fromhex(shown["transaction"][2:]),
        log_index=shown["log_index"],
        nonce=secrets.token_bytes(32),
        deadline=int(datetime.now(UTC).timestamp()) + 600,
    )
    signature = "0x" + sender.sign(claim.digest(house.domain)).hex()
    body = {"claim": claim.message(), "signature": signature}
    for _ in range(2):
        answer = await counter.client.post("/v1/suspense-claims", json=body)
        assert (answer.status_code, answer.json()["state"]) == (202, "requested")
    other = {**body, "signature": "0x" + wallet.sign(claim.digest(house.domain)).hex()}
    refused = await counter.client.post("/v1/suspense-claims", json=other)
    assert (refused.status_code, refused.json()["code"]) == (401, "bad-signature")


@pytest.mark.parametrize("log_index", [2**31, 2**63, 2**64 - 1])
async def test_a_claim_of_a_log_index_that_no_block_has_is_not_found(
    counter: Counter, log_index: int
) -> None:
    wallet = SigningKey(secrets.token_bytes(32))
    until = int(datetime.now(UTC).timestamp()) + 600
    claim = SuspenseClaim(
        wallet.address, secrets.token_bytes(32), log_index, secrets.token_bytes(32), until
    )
    signature = "0x" + wallet.sign(claim.digest(counter.house.domain)).hex()
    body = {"claim": claim.message(), "signature": signature}
    answer = await counter.client.post("/v1/suspense-claims", json=body)
    assert (answer.status_code, answer.json()["code"]) == (404, "transfer-not-found")


async def test_a_withdrawal_is_taken_followed_and_listed(counter: Counter) -> None:
    house = counter.house
    wallet, other = await house.new_wallet(), await house.new_wallet()
    answer = await counter.post(wallet, 1_000_000)
    assert answer.status_code == 202
    made = answer.json()
    assert answer.headers["location"] == f"/v1/withdrawals/{made['id']}"
    assert (made["state"], made["amount"]) == ("pending", "1.000000000")
    assert made["transactions"] == []
    balance = (await counter.get(wallet, "/v1/balances")).json()
    assert [each["id"] for each in balance["withdrawals"]] == [made["id"]]

    await house.withdrawals().run_once()
    await house.sender().run_once()
    await house.sender().run_once()
    mined = (await counter.get(wallet, answer.headers["location"])).json()
    [sent] = mined["transactions"]
    assert (sent["state"], sent["confirmations"]) == ("mined", 1)
    assert mined["next_action"].startswith("wait until block")
    await house.settle(2)
    paid = (await counter.get(wallet, answer.headers["location"])).json()
    assert (paid["state"], paid["next_action"]) == ("paid", "none: the tokens are at the wallet")

    again = await counter.post(wallet, 2_000_000)
    page = (await counter.get(wallet, "/v1/withdrawals?limit=1")).json()
    assert [each["id"] for each in page["withdrawals"]] == [again.json()["id"]]
    rest = (await counter.get(wallet, f"/v1/withdrawals?before={page['next']}")).json()
    assert ([each["id"] for each in rest["withdrawals"]], rest["next"]) == ([made["id"]], None)

    hidden = await counter.get(other, answer.headers["location"])
    assert (hidden.status_code, hidden.json()["code"]) == (404, "withdrawal-not-found")
    assert (await counter.client.get("/v1/withdrawals")).status_code == 401
    wrong = await counter.get(wallet, "/v1/withdrawals", scope="jobs")
    assert wrong.status_code == 403


async def test_refusals_are_problems_with_their_figures(counter: Counter) -> None:
    wallet = await counter.house.new_wallet()
    for amount, status, code in (
        (10, 422, "withdrawal-too-small"),
        (10**12, 402, "insufficient-funds"),
    ):
        refused = await counter.post(wallet, amount)
        assert (refused.status_code, refused.json()["code"]) == (status, code)
    late = await counter.post(wallet, 1_000_000, deadline=1)
    assert (late.status_code, late.json()["code"]) == (422, "withdrawal-deadline")
    assert late.json()["least"] < late.json()["most"]
    message = counter.house.message(wallet, 1_000_000)
    body = {"withdrawal": message.message(), "signature": "0x" + "11" * 65}
    forged = await counter.client.post("/v1/withdrawals", json=body)
    assert (forged.status_code, forged.json()["code"]) == (401, "bad-signature")
    unknown = await counter.client.post("/v1/withdrawals", json={**body, "recipient": "0x"})
    assert unknown.status_code == 422


async def test_a_worker_with_the_operators_keystore_pays_by_itself(
    house: House, tmp_path: Path
) -> None:
    keystore, password = tmp_path / "operator.json", tmp_path / "operator.txt"
    write_keystore(keystore, TEST_KEYS[OPERATOR], "a test", scrypt_cost=QUICK_SCRYPT)
    password.write_text("a test\n")
    settings = settings_of(
        house,
        operator_keystore=keystore,
        operator_password_file=password,
        chain_poll_seconds=0.05,
    )
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    stop = asyncio.Event()
    worker = asyncio.create_task(build_worker(settings).run(stop))
    try:
        async with asyncio.timeout(20):
            while house.withdrawal(asked.id).state != "paid":
                await asyncio.sleep(0.05)
                house.contracts.chain.finalize()
    finally:
        stop.set()
        await worker
    assert await house.payments(wallet.address) == [1_000_000]
    await house.check_books()
