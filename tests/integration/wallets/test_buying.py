"""A contract wallet buys over HTTP, reads what is its own, and its receipt says how it signed."""

import json
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from app.assembly import Gateway, build_sequencer, record_service_of
from app.embedded.fault_rpc import Fault, FaultRpc
from app.kit.clock import unix_seconds, utc_now
from app.main import build_app
from app.wallets.read_access import read_access_header
from ledger.authorization import ReadAccess, RequestAuthorization
from ledger.encoding import Address, checksum_address
from ledger.money import Nano
from ledger.note import NoteSigner
from ledger.receipt import Receipt
from ledger.signing import SigningKey
from tests.chain import Contracts
from tests.integration.books import Books
from tests.integration.gateway.conftest import Wallet as Buyer
from tests.integration.gateway.conftest import (
    authorize_seller,
    gateway_settings,
    price_market,
    quote_body,
)
from tests.integration.wallets.smart import Mode, coming, deployed
from tests.unit.ledger.verify.running import run

FUNDS = Nano(10**9)


@dataclass
class Shop:
    """A gateway that asks a chain over a proxy, and what a wallet does before it."""

    gateway: Gateway
    client: httpx.AsyncClient
    node: FaultRpc
    url: str

    def fund(self, payer: Address) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT offpeak.credit_deposit(gen_random_uuid(), %s, %s, %s)",
                (payer, self.gateway.token, FUNDS),
            )

    async def accepted(
        self, payer: Address, owner: SigningKey, wrap: Any = bytes
    ) -> dict[str, Any]:
        """The body that accepts a new quote for `payer`, signed by the owner."""
        asked = quote_body(Buyer(SigningKey(secrets.token_bytes(32))))
        asked["payer"] = checksum_address(payer)
        quoted = (await self.client.post("/v1/quotes", json=asked)).json()
        message = quoted["authorization"]["message"]
        digest = RequestAuthorization.parse(message).digest(self.gateway.domain)
        return {
            "quote": quoted["quote"],
            "quote_signature": quoted["signature"],
            "request": asked["request"],
            "salt": asked["salt"],
            "authorization": message,
            "signature": "0x" + wrap(owner.sign(digest)).hex(),
        }

    async def post(self, body: dict[str, Any]) -> httpx.Response:
        headers = {"Prefer": "respond-async"}
        return await self.client.post("/v1/requests", json=body, headers=headers)

    async def get(self, path: str, payer: Address, owner: SigningKey, scope: str) -> httpx.Response:
        until = unix_seconds(utc_now()) + 300
        access = ReadAccess(payer, scope, until, secrets.token_bytes(32))
        header = read_access_header(access, owner.sign(access.digest(self.gateway.domain)))
        return await self.client.get(path, headers={"Authorization": header})

    def kept(self, payer: Address) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            query = "SELECT method FROM offpeak.contract_signature WHERE signer = %s"
            return connection.execute(query, (payer,)).fetchall()

    async def receipt(self, job: str, payer: Address, owner: SigningKey) -> bytes:
        """The receipt of a job that fails here and now."""
        with Books(self.url) as books:
            assert books.end(UUID(job.removeprefix("job_"))) == "ok"
        settings, database = self.gateway.settings, self.gateway.database
        await record_service_of(settings, database).sign_unsigned(100)
        await build_sequencer(settings, database).run_once()
        answer = await self.get(f"/v1/receipts/{job}", payer, owner, "receipts")
        assert answer.status_code == 200, answer.text
        return answer.content

    @property
    def policy(self) -> str:
        settings = self.gateway.settings
        signer = NoteSigner(settings.log_origin, settings.checkpoint_key_bytes())
        anchor, treasury = settings.receipt_anchor_address, settings.treasury_address
        return f"log {signer.verifier}\ndomain {settings.chain_id} {anchor} {treasury}\n"


@pytest.fixture
def node(contracts: Contracts) -> Iterator[FaultRpc]:
    with FaultRpc(contracts.chain.url) as proxy:
        yield proxy


@pytest.fixture
async def shop(
    fresh_database_url: str, contracts: Contracts, node: FaultRpc
) -> AsyncIterator[Shop]:
    settings = gateway_settings(
        fresh_database_url,
        None,
        rpc_urls=node.url,
        checkpoint_key=secrets.token_hex(32),
        token_address=contracts.token,
        treasury_address=contracts.treasury,
        receipt_anchor_address=contracts.anchor,
    )
    app = build_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            gateway = app.state.gateway
            authorize_seller(fresh_database_url).offer(4)
            await price_market(gateway)
            yield Shop(gateway, client, node, fresh_database_url)


async def test_a_contract_wallet_buys_and_its_receipt_is_checked_with_a_node(
    shop: Shop, contracts: Contracts, tmp_path: Path
) -> None:
    chain = contracts.chain
    wallet = deployed(chain)
    shop.fund(wallet.address)
    answer = await shop.post(await shop.accepted(wallet.address, wallet.owner))
    assert answer.status_code == 202, answer.text
    job = answer.json()["id"]
    assert shop.kept(wallet.address) == [("erc-1271",)]
    seen = await shop.get(f"/v1/jobs/{job}", wallet.address, wallet.owner, "jobs")
    assert seen.status_code == 200
    raw = await shop.receipt(job, wallet.address, wallet.owner)
    check = Receipt.parse(raw).acceptance.contract_check
    assert check is not None
    (tmp_path / "receipt.json").write_bytes(raw)
    (tmp_path / "policy.txt").write_text(shop.policy)
    chain.finalize()

    def verified(*more: str) -> tuple[int, str]:
        ended = run(tmp_path / "receipt.json", "--policy", tmp_path / "policy.txt", "--json", *more)
        steps = ended.document["receipts"][0]["steps"]
        step = next(each for each in steps if each["step"] == "acceptance-signature")
        return ended.code, step["detail"]

    code, detail = verified()
    assert (code, "not checkable offline" in detail) == (5, True)
    code, detail = verified("--rpc", chain.url)
    assert (code, "confirms it at finalized block" in detail) == (0, True)
    wallet.behave(Mode.REFUSING)
    chain.finalize()
    code, detail = verified("--rpc", chain.url)
    assert (code, f"at block {check.block_number}, not any more" in detail) == (0, True)
    document = json.loads(raw)
    document["acceptance"]["signature"] = "0x" + "01" * 65
    (tmp_path / "receipt.json").write_text(json.dumps(document))
    assert verified("--rpc", chain.url)[0] == 1


async def test_a_wallet_that_is_not_deployed_yet_buys_too(shop: Shop, contracts: Contracts) -> None:
    wallet = coming(contracts.chain)
    shop.fund(wallet.address)
    answer = await shop.post(await shop.accepted(wallet.address, wallet.owner, wallet.wrapped))
    assert answer.status_code == 202, answer.text
    assert shop.kept(wallet.address) == [("erc-6492",)]


async def test_without_a_node_nothing_is_taken_and_nothing_is_refused_for_good(
    shop: Shop, contracts: Contracts
) -> None:
    wallet = deployed(contracts.chain)
    shop.fund(wallet.address)
    body = await shop.accepted(wallet.address, wallet.owner)
    shop.node.add(Fault(kind="http-status"))
    refused = await shop.post(body)
    assert (refused.status_code, refused.json()["code"]) == (503, "signature-not-checkable")
    assert refused.headers["retry-after"] == "2"
    read = await shop.get("/v1/balances", wallet.address, wallet.owner, "balances")
    assert read.status_code == 503
    assert shop.kept(wallet.address) == []
    plain = SigningKey(secrets.token_bytes(32))
    shop.fund(plain.address)
    assert (await shop.post(await shop.accepted(plain.address, plain))).status_code == 202
    shop.node.heal()
    assert (await shop.post(body)).status_code == 202


async def test_another_owner_buys_nothing(shop: Shop, contracts: Contracts) -> None:
    wallet = deployed(contracts.chain)
    shop.fund(wallet.address)
    thief = SigningKey(secrets.token_bytes(32))
    refused = await shop.post(await shop.accepted(wallet.address, thief))
    assert (refused.status_code, refused.json()["code"]) == (401, "bad-signature")
    assert shop.kept(wallet.address) == []
