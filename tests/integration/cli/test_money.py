"""Money in and out of a running gateway, on its chain, by the commands that people use."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from app.chain.calls import TRANSFER
from app.chain.keys import KeystoreKey
from app.chain.rpc import open_rpc
from app.chain.sending import Outgoing, prepare, send_and_wait
from app.cli.exits import Exit
from app.embedded.stack import Stack
from tests.integration.cli.running import invoked
from tests.waiting import wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def _on_a_chain(stack: Stack) -> None:
    if stack.chain is None:
        pytest.skip("this all-in-one has no chain: node and npm are missing")


def document(stack: Stack, *arguments: str) -> Any:
    done = invoked(stack.home.path, *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def available(stack: Stack) -> Decimal:
    return Decimal(document(stack, "wallet", "balance")["available"])


def test_what_is_withdrawn_can_be_deposited_again_to_the_unit(stack: Stack) -> None:
    before = available(stack)
    paid = document(stack, "withdraw", "0.3", "--yes")
    assert (paid["state"], paid["amount"], paid["fee"]) == ("paid", "0.300000000", "0.000000000")
    assert available(stack) == before - Decimal("0.3")
    done = invoked(stack.home.path, "deposit", "0.3", "--yes", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["credited"] is True
    assert "credited" in done.stderr
    assert available(stack) == before


def test_chain_and_books_agree_by_every_command_that_compares_them(stack: Stack) -> None:
    asked = document(stack, "ask", "Say hello.", "--max-tokens", "8", "--yes")
    assert Decimal(asked["job"]["charge"]) > 0
    status = document(stack, "treasury", "status")
    assert (status["holds"], status["tokens_differ"], status["events_differ"]) == (
        True,
        "0.000000000",
        0,
    )
    plain = invoked(stack.home.path, "treasury", "status")
    assert "chain and books agree to the unit" in plain.stdout
    assert document(stack, "ledger", "check")["clean"]
    money = document(stack, "finance", "reconcile")
    assert money["chain"]["state"].startswith("agrees to the unit at final block")
    assert money["money"][0]["made_up"] == "0.000000000"


def test_nothing_is_signed_before_the_fee_is_shown_and_agreed_to(stack: Stack) -> None:
    done = invoked(stack.home.path, "withdraw", "0.1")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "fee" in done.stderr
    assert "(this wallet, always)" in done.stderr
    assert document(stack, "wallet", "balance")["withdrawals"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["100000"], "insufficient-funds", Exit.FUNDS),
        (["0.0000001"], "bad-amount", Exit.USAGE),
        (["0"], "bad-amount", Exit.USAGE),
        (["everything"], "bad-amount", Exit.USAGE),
        (["0.1", "--max-fee", "0.0000001"], "bad-input", Exit.USAGE),
    ],
)
def test_what_cannot_be_withdrawn_is_refused_by_name(
    stack: Stack, arguments: list[str], code: str, exit_code: Exit
) -> None:
    done = invoked(stack.home.path, "withdraw", *arguments, "--yes")
    assert (done.exit_code, code in done.stderr) == (exit_code, True), done.stderr


def test_an_open_exit_closes_the_wallet_until_it_is_cancelled(stack: Stack) -> None:
    home = stack.home.path
    before = available(stack)
    document(stack, "exit", "request", "0.2", "--yes")
    wait_until(lambda: available(stack) < before, timeout_seconds=20)
    shown = document(stack, "wallet", "balance")
    assert Decimal(shown["exiting"]) == Decimal("0.2")
    assert "offpeak exit cancel" in shown["next_steps"]["exiting"]
    for arguments in (("ask", "Hello.", "--max-tokens", "8", "--yes"), ("withdraw", "0.1", "-y")):
        refused = invoked(home, *arguments)
        assert (refused.exit_code, "exit-open" in refused.stderr) == (Exit.REFUSED, True)
    document(stack, "exit", "cancel", "--yes")
    wait_until(lambda: available(stack) == before, timeout_seconds=20)
    assert document(stack, "ask", "Hello.", "--max-tokens", "8", "--yes")["record_verified"]


def test_a_withdrawal_goes_on_when_nobody_waits_for_it(stack: Stack) -> None:
    asked = document(stack, "withdraw", "0.05", "--yes", "--no-wait")
    assert asked["state"] == "pending"
    wait_until(
        lambda: document(stack, "wallet", "balance")["withdrawals"] == [], timeout_seconds=20
    )


def test_a_gateway_of_other_contracts_gets_no_withdrawal_signed(stack: Stack) -> None:
    done = invoked(
        stack.home.path,
        "withdraw",
        "0.05",
        "--yes",
        OFFPEAK_TREASURY_ADDRESS="0x" + "77" * 20,
    )
    assert (done.exit_code, "terms-differ" in done.stderr) == (Exit.NOT_SIGNED, True)
    done = invoked(stack.home.path, "withdraw", "0.05", "--yes", OFFPEAK_CHAIN_ID="1")
    assert (done.exit_code, "wrong-chain" in done.stderr) == (Exit.NOT_SIGNED, True)


def test_tokens_that_were_sent_past_the_deposits_are_claimed(stack: Stack) -> None:
    before = available(stack)
    document(stack, "withdraw", "0.02", "--yes")
    asyncio.run(send_plainly(stack, 20_000))
    wait_until(lambda: unclaimed(stack) != [], timeout_seconds=20)
    shown = document(stack, "wallet", "balance")
    assert (shown["unaccounted"], available(stack)) == ("0.020000000", before - Decimal("0.02"))
    [transfer] = unclaimed(stack)
    assert transfer["id"] in shown["next_steps"]["unaccounted"]
    unknown = invoked(stack.home.path, "wallet", "claim", "00000000")
    assert (unknown.exit_code, "transfer-unknown" in unknown.stderr) == (Exit.USAGE, True)
    assert document(stack, "wallet", "claim", transfer["id"])["state"] == "requested"
    wait_until(lambda: available(stack) == before, timeout_seconds=20)
    assert document(stack, "wallet", "balance")["transfers"] == []
    assert document(stack, "treasury", "status")["holds"]


def unclaimed(stack: Stack) -> list[Any]:
    """Return what can be claimed now."""
    transfers = document(stack, "wallet", "balance")["transfers"]
    return [each for each in transfers if each["final"] and not each["claimed"]]


async def send_plainly(stack: Stack, amount: int) -> None:
    """Send base units of the token to the treasury, without a deposit."""
    assert stack.chain is not None
    deployed = stack.chain.deployed
    async with open_rpc([stack.chain.url]) as rpc:
        key = KeystoreKey(stack.wallet_key)
        data = TRANSFER.data(deployed.treasury, amount)
        outgoing = Outgoing(to=deployed.token, data=data)
        await send_and_wait(rpc, key, await prepare(rpc, key.address, outgoing), wait_seconds=10)


def test_what_is_on_the_way_is_listed_and_a_key_that_sends_is_not_abandoned(stack: Stack) -> None:
    document(stack, "withdraw", "0.1", "--yes", "--no-wait")
    wait_until(lambda: document(stack, "treasury", "transactions")["transactions"])
    [mine, *_] = document(stack, "treasury", "transactions")["transactions"]
    assert mine["purpose"] in {"withdrawal", "commit", "anchor"}
    because = ("--because", "a test")
    refused = invoked(stack.home.path, "treasury", "abandon", "--key", mine["sender"], *because)
    assert (refused.exit_code, "key-still-sends" in refused.stderr) == (Exit.REFUSED, True)
    stranger = "0x" + "99" * 20
    none = invoked(stack.home.path, "treasury", "abandon", "--key", stranger, *because)
    assert (none.exit_code, "nothing to abandon" in none.stderr) == (0, True)
    neither = invoked(stack.home.path, "treasury", "abandon", *because)
    assert neither.exit_code == Exit.USAGE
