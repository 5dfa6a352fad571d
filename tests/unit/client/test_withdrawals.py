"""What a wallet signs to withdraw: its own amount, for its own terms, at a fee it can bear."""

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.client.chain_errors import FeeAbove, TermsDiffer
from app.client.client import Client
from app.client.errors import NotBaseUnits, WrongChain
from app.client.transport import Transport
from app.client.wallet import Wallet
from app.client.withdrawals import VALID_SECONDS, Wish, WithdrawalPlan, plan_withdrawal
from ledger.encoding import checksum_address
from ledger.money import Nano, format_amount, parse_amount
from tests.unit.client.gateway import NOW, PAYER, TERMS, WALLET_KEY

BASE = 1_000
NOTHING: dict[str, object] = {
    "payer": checksum_address(PAYER),
    "asset": checksum_address(TERMS.token),
    **dict.fromkeys(
        ("held", "pending", "withdrawing", "exiting", "unaccounted", "owed"), "0.000000000"
    ),
    "deposits": [],
    "withdrawals": [],
    "exit": None,
    "transfers": [],
    "next_steps": {},
    "as_of": "2026-01-01T00:00:00.000Z",
}


def client(fee: str, available: str = "5.000000529", **terms: Any) -> Client:
    """Return a client of a gateway that says this."""
    offered = {
        "chain_id": TERMS.chain_id,
        "treasury": checksum_address(TERMS.treasury),
        "receipt_anchor": checksum_address(TERMS.receipt_anchor),
        "token": checksum_address(TERMS.token),
        "has_chain": True,
        "exit_delay_seconds": 86_400,
        "deposit_safe_limit": "1000.000000000",
        "withdrawal_minimum": "1.000000000",
        "withdrawal_fee": fee,
        "withdrawal_fee_base_units": str(parse_amount(fee) // BASE),
        **terms,
    }

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/treasury":
            return httpx.Response(200, json=offered)
        return httpx.Response(200, json={**NOTHING, "available": available})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    return Client(Transport("http://gateway", http=http), TERMS, wallet=Wallet(WALLET_KEY))


def planned(
    asked: Client, amount: str | None, max_fee: str | None = None, **given: Any
) -> WithdrawalPlan:
    wish = Wish(
        amount=None if amount is None else parse_amount(amount),
        max_fee=None if max_fee is None else parse_amount(max_fee),
    )
    return plan_withdrawal(asked, wish, now=NOW, nonce=b"\x01" * 32, **given)


def test_all_that_is_available_is_rounded_down_to_base_units() -> None:
    plan = planned(client("0.000000000"), None)
    assert (plan.message.amount, plan.message.max_fee) == (5_000_000, 0)
    assert (plan.message.payer, plan.message.token) == (PAYER, TERMS.token)
    assert plan.message.deadline == NOW + VALID_SECONDS


def test_the_fee_may_rise_by_half_and_no_further() -> None:
    plan = planned(client("0.250001000"), "2")
    assert (plan.fee, plan.most_fee) == (250_001 * BASE, 375_002 * BASE)


def test_a_limit_of_the_wallets_own_is_kept() -> None:
    assert planned(client("0.250000000"), "2", "0.3").most_fee == parse_amount("0.3")
    with pytest.raises(FeeAbove, match=r"fee is 0\.250000000 now, the limit 0\.200000000"):
        planned(client("0.250000000"), "2", "0.2")


def test_a_fee_that_would_eat_it_all_is_not_signed() -> None:
    with pytest.raises(FeeAbove):
        planned(client("0.250000000"), "0.25")
    assert planned(client("0.250000000"), "0.250001").most_fee == parse_amount("0.25")


@given(fee=st.integers(0, 10**7), amount=st.integers(1, 10**7))
def test_what_is_signed_never_pays_a_fee_of_its_whole_amount(fee: int, amount: int) -> None:
    texts = [format_amount(Nano(each * BASE)) for each in (fee, amount)]
    try:
        plan = planned(client(texts[0]), texts[1])
    except FeeAbove:
        assert fee >= amount
    else:
        assert fee <= plan.message.max_fee < amount == plan.message.amount


def test_nothing_is_no_amount() -> None:
    with pytest.raises(NotBaseUnits):
        planned(client("0.000000000", available="0.000000999"), None)


def test_another_chain_gets_no_signature_whoever_says_so() -> None:
    with pytest.raises(WrongChain, match="the gateway is of chain 1,"):
        planned(client("0.000000000", chain_id=1), "1")
    with pytest.raises(WrongChain, match="the node is of chain 1,"):
        planned(client("0.000000000"), "1", chain_id=1)


@pytest.mark.parametrize("name", ["treasury", "token"])
def test_another_contract_gets_no_signature(name: str) -> None:
    with pytest.raises(TermsDiffer, match=name):
        planned(client("0.000000000", **{name: "0x" + "77" * 20}), "1")
