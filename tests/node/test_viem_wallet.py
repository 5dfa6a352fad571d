"""viem as a wallet: what it deposits is there, what it signs is what we sign, both are taken."""

import json
import secrets
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.chain.calls import AuthorizedDeposit, WithdrawalCall
from app.chain.events import TREASURY_EVENTS, Deposited, Withdrawn
from app.main import build_app
from ledger.authorization import Withdrawal, authorization_domain
from ledger.encoding import Domain, checksum_address, parse_address
from ledger.signing import SigningKey
from ledger.token_messages import Permit, ReceiveWithAuthorization
from tests import npm
from tests.chain import CHAIN_ID, Contracts
from tests.integration.gateway.conftest import gateway_settings
from tests.integration.treasury_books import Seen, TreasuryBooks

HERE = Path(__file__).parent
AMOUNT = 4_000_000
"""Base units of each deposit; the withdrawal takes two of the three back."""

pytestmark = [pytest.mark.node, npm.needs_npm]


class Viem:
    """One run of wallet.mjs with a key of its own."""

    def __init__(self, contracts: Contracts) -> None:
        self.contracts = contracts
        self.secret = secrets.token_bytes(32)
        self.key = SigningKey(self.secret)
        contracts.chain.set_gas_money(self.key.address, 10**18)
        contracts.mint(self.key.address, 3 * AMOUNT)
        self.deadline = contracts.chain.now() + 3_600
        self.given: dict[str, object] = {
            "url": contracts.chain.url,
            "chainId": CHAIN_ID,
            "key": "0x" + self.secret.hex(),
            "treasury": checksum_address(contracts.treasury),
            "token": checksum_address(contracts.token),
            "amount": str(AMOUNT),
            "deadline": str(self.deadline),
            "withdrawal": {
                "token": checksum_address(contracts.token),
                "amount": str(2 * AMOUNT),
                "maxFee": "0",
                "nonce": "0x" + secrets.token_hex(32),
                "deadline": str(self.deadline),
            },
        }
        self.told = self.run()

    def run(self) -> dict[str, Any]:
        folder = npm.installed(HERE / "package.json")
        with tempfile.TemporaryDirectory(dir=folder) as beside:  # node looks for modules upwards
            script, given = Path(beside) / "wallet.mjs", Path(beside) / "given.json"
            script.write_bytes((HERE / script.name).read_bytes())
            given.write_text(json.dumps(self.given))
            run = subprocess.run(
                ["node", str(script), str(given)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        assert run.returncode == 0, run.stderr
        told: dict[str, Any] = json.loads(run.stdout)
        return told

    @property
    def withdrawal(self) -> Withdrawal:
        return Withdrawal.parse(self.told["withdrawal"])

    def signature(self, kind: str) -> bytes:
        return bytes.fromhex(self.told["signed"][kind][2:])


@pytest.fixture(scope="module")
def viem(contracts: Contracts) -> Viem:
    return Viem(contracts)


def test_viem_deposits_in_each_way(viem: Viem) -> None:
    assert parse_address(viem.told["address"]) == viem.key.address
    assert viem.told["available"] == str(3 * AMOUNT)


def test_we_sign_to_the_byte_what_viem_signs(viem: Viem) -> None:
    contracts = viem.contracts
    treasury = authorization_domain(chain_id=CHAIN_ID, treasury=contracts.treasury)
    token = Domain("USD Coin", "2", CHAIN_ID, contracts.token)
    me = viem.key.address
    call = AuthorizedDeposit(
        payer=me,
        beneficiary=me,
        amount=AMOUNT,
        ref=b"\xa1" * 32,
        valid_after=0,
        valid_before=viem.deadline,
    )
    receive = ReceiveWithAuthorization(
        me, contracts.treasury, AMOUNT, 0, viem.deadline, call.nonce()
    )
    permit = Permit(me, contracts.treasury, AMOUNT, 0, viem.deadline)
    for message, domain in ((receive, token), (permit, token), (viem.withdrawal, treasury)):
        ours = viem.key.sign(message.digest(domain))
        assert ours == viem.signature(message.TYPE.name), message.TYPE.name


async def test_the_gateway_and_the_contract_take_viems_withdrawal(
    viem: Viem, fresh_database_url: str
) -> None:
    contracts = viem.contracts
    settings = gateway_settings(
        fresh_database_url,
        None,
        rpc_urls=contracts.chain.url,
        token_address=contracts.token,
        treasury_address=contracts.treasury,
        receipt_anchor_address=contracts.anchor,
        commit_interval_seconds=60,
        withdrawal_minimum="0.000001",
    )
    with TreasuryBooks(fresh_database_url) as books:
        for each in viem.told["deposits"]:
            event = books.see(Seen("deposited", viem.key.address, AMOUNT, each["block"]))
            with books.as_treasury():
                books.one("SELECT offpeak.book_event(%s, %s)", event, contracts.token)
    app = build_app(settings)
    body = {
        "withdrawal": viem.told["withdrawal"],
        "signature": viem.told["signed"]["Withdrawal"],
    }
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://gateway") as client,
    ):
        answer = await client.post("/v1/withdrawals", json=body)
        again = await client.post("/v1/withdrawals", json=body)
        bad = {**body, "signature": "0x" + viem.signature("Permit").hex()}
        refused = await client.post("/v1/withdrawals", json=bad)
    assert answer.status_code == 202, answer.text
    assert answer.json()["amount"] == "8.000000000"
    assert again.json()["id"] == answer.json()["id"]
    assert (refused.status_code, refused.json()["code"]) == (401, "bad-signature")


def test_the_contract_pays_what_viem_signed(viem: Viem) -> None:
    message = viem.withdrawal
    call = WithdrawalCall(
        payer=message.payer,
        amount=message.amount,
        max_fee=message.max_fee,
        nonce=message.nonce,
        deadline=message.deadline,
        fee=0,
        signature=viem.signature("Withdrawal"),
    )
    receipt = viem.contracts.operate(call.data())
    events = [TREASURY_EVENTS.decode(log) for log in receipt.logs]
    paid = [event for event in events if isinstance(event, Withdrawn)]
    assert [(event.payer, event.amount) for event in paid] == [(viem.key.address, 2 * AMOUNT)]
    assert not any(isinstance(event, Deposited) for event in events)
