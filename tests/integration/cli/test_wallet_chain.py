"""A wallet's own commands on a real chain, without a gateway: deposit and leave."""

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from app.chain.calls import COMMIT_SPEND, PAUSE
from app.cli.exits import Exit
from app.client.keystore import QUICK_SCRYPT, write_keystore
from ledger.encoding import Address
from ledger.signing import SigningKey
from tests.chain import (
    ANCHOR,
    EXIT_DELAY,
    GUARDIAN,
    OPERATOR,
    TEST_KEYS,
    Contracts,
    TestChain,
    address_of_key,
)
from tests.integration.cli.running import invoked

WEI = 10**18
BASE = 1_000_000
"""Base units of a token."""


class Owner:
    """A wallet with tokens and gas money, and its command line."""

    def __init__(self, contracts: Contracts, home: Path) -> None:
        self.contracts = contracts
        self.home = home
        self.key = SigningKey(secret := secrets.token_bytes(32))
        (home / "wallet.password").write_text("pw")
        write_keystore(home / "wallet.json", secret, "pw", scrypt_cost=QUICK_SCRYPT)
        contracts.chain.set_gas_money(self.address, WEI)
        contracts.mint(self.address, 100 * BASE)

    @property
    def address(self) -> Address:
        return self.key.address

    def run(self, *arguments: str, **given: str) -> Result:
        known = {
            "OFFPEAK_RPC_URL": self.contracts.chain.url,
            "OFFPEAK_TOKEN_ADDRESS": self.contracts.token,
            "OFFPEAK_TREASURY_ADDRESS": self.contracts.treasury,
            "OFFPEAK_URL": "http://127.0.0.1:9",  # nobody's: no gateway is needed
            **given,
        }
        return invoked(self.home, *arguments, **known)

    def document(self, *arguments: str, **given: str) -> Any:
        done = self.run(*arguments, "--json", **given)
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    def in_contract(self) -> str:
        return str(self.document("exit", "status")["available"])


@pytest.fixture
def owner(contracts: Contracts, tmp_path: Path) -> Owner:
    return Owner(contracts, tmp_path)


Way = Callable[[Owner], Any]


@pytest.mark.parametrize(
    ("option", "way"),
    [
        ([], "authorization"),
        (["--authorization"], "authorization"),
        (["--permit"], "permit"),
        (["--approve"], "approval"),
    ],
)
def test_a_deposit_reaches_the_treasury_in_each_way(
    owner: Owner, option: list[str], way: str
) -> None:
    done = owner.document("deposit", "2.5", *option, "--yes")
    assert (done["way"], done["amount"]) == (way, "2.500000000")
    assert done["credited"] is None
    assert owner.in_contract() == "2.500000000"


def test_the_gas_is_shown_before_anything_is_sent_and_nothing_is_without_a_yes(
    owner: Owner,
) -> None:
    done = owner.run("deposit", "1")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "native coins; the wallet has 1" in done.stderr
    assert "EIP-3009" in done.stderr
    assert owner.in_contract() == "0.000000000"


@pytest.mark.parametrize("amount", ["0", "0.0000001", "-1", "1e3", "x"])
def test_an_amount_that_the_token_cannot_express_is_refused(owner: Owner, amount: str) -> None:
    done = owner.run("deposit", "--yes", "--", amount)
    assert (done.exit_code, "bad-amount" in done.stderr) == (Exit.USAGE, True)


def test_more_than_the_wallet_holds_is_refused_by_its_own_name(owner: Owner) -> None:
    done = owner.run("deposit", "100.000001", "--yes")
    assert done.exit_code == Exit.FUNDS
    assert "holds 100.000000000 tokens, 100.000001000 wanted" in done.stderr


def test_a_wallet_without_gas_money_is_told_so_before_it_sends(owner: Owner) -> None:
    owner.contracts.chain.set_gas_money(owner.address, 1)
    done = owner.run("deposit", "1", "--yes")
    assert (done.exit_code, "gas-missing" in done.stderr) == (Exit.FUNDS, True)
    assert "send native coins" in done.stderr


def test_a_node_of_another_chain_gets_no_signature(owner: Owner) -> None:
    done = owner.run("deposit", "1", "--yes", OFFPEAK_CHAIN_ID="1")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "the node is of chain 31337, this wallet is set to chain 1" in done.stderr


@pytest.mark.parametrize("name", ["OFFPEAK_TREASURY_ADDRESS", "OFFPEAK_TOKEN_ADDRESS"])
def test_another_contract_gets_no_signature(owner: Owner, name: str) -> None:
    done = owner.run("deposit", "1", "--yes", **{name: owner.contracts.anchor})
    assert (done.exit_code, "wrong-contract" in done.stderr) == (Exit.NOT_SIGNED, True)


def test_without_a_node_the_option_that_names_one_is_told(owner: Owner) -> None:
    done = owner.run("exit", "status", OFFPEAK_RPC_URL="")
    assert done.exit_code == Exit.USAGE
    assert "--rpc" in done.stderr


def test_a_paused_treasury_says_what_still_works(owner: Owner) -> None:
    chain, treasury = owner.contracts.chain, owner.contracts.treasury
    owner.document("deposit", "1", "--yes")
    before = chain.ask("evm_snapshot")
    chain.send(GUARDIAN, treasury, PAUSE.data())
    refused = owner.run("deposit", "1", "--yes")
    assert refused.exit_code == Exit.REFUSED
    assert "the treasury is paused: only exits work" in refused.stderr
    assert owner.document("exit", "request", "--yes")["exit"]["amount"] == "1.000000000"
    chain.ask("evm_revert", before)


def test_a_wallet_leaves_with_all_of_its_money_without_us(owner: Owner, chain: TestChain) -> None:
    owner.document("deposit", "3", "--yes")
    asked = owner.document("exit", "request", "--yes")
    assert asked["exit"]["amount"] == "3.000000000"
    assert not asked["exit"]["ripe"]
    early = owner.run("exit", "finalize", "--yes")
    assert (early.exit_code, "exit-not-ripe" in early.stderr) == (Exit.TRY_LATER, True)
    chain.forward(EXIT_DELAY)
    assert owner.document("exit", "status")["exit"]["ripe"]
    owner.document("exit", "finalize", "--yes")
    left = owner.document("exit", "status")
    assert (left["available"], left["exit"]) == ("0.000000000", None)
    assert owner.document("deposit", "100", "--yes")["amount"] == "100.000000000"


def test_an_exit_is_cut_to_what_is_left_after_committed_spending(
    owner: Owner, chain: TestChain
) -> None:
    owner.document("deposit", "3", "--yes")
    owner.document("exit", "request", "2", "--yes")
    owner.contracts.operate(COMMIT_SPEND.data(1, [owner.address], [2 * BASE]))
    chain.forward(EXIT_DELAY)
    owner.document("exit", "finalize", "--yes")
    assert owner.in_contract() == "0.000000000"


def test_a_cancelled_exit_and_a_lapsed_one_leave_the_money_in_the_contract(
    owner: Owner, chain: TestChain
) -> None:
    owner.document("deposit", "3", "--yes")
    assert owner.run("exit", "cancel", "--yes").exit_code == Exit.REFUSED
    owner.document("exit", "request", "1", "--yes")
    assert owner.document("exit", "cancel", "--yes")["exit"] is None
    owner.document("exit", "request", "1", "--yes")
    chain.forward(EXIT_DELAY + 72 * 3_600 + 1)
    lapsed = owner.run("exit", "finalize", "--yes")
    assert (lapsed.exit_code, "it lapsed" in lapsed.stderr) == (Exit.REFUSED, True)
    assert owner.in_contract() == "3.000000000"


def test_more_than_the_contract_has_cannot_be_asked_for(owner: Owner) -> None:
    done = owner.run("exit", "request", "5", "--yes")
    assert (done.exit_code, "nothing-to-exit" in done.stderr) == (Exit.REFUSED, True)


def test_the_guardian_pauses_and_only_an_admin_unpauses(owner: Owner, tmp_path: Path) -> None:
    guardian = tmp_path / "guardian.json"
    write_keystore(guardian, TEST_KEYS[GUARDIAN], "pw", scrypt_cost=QUICK_SCRYPT)
    password = str(tmp_path / "wallet.password")
    by = ("--keystore", str(guardian), "--password-file", password, "--yes")
    before = owner.contracts.chain.ask("evm_snapshot")
    assert owner.run("treasury", "pause", "--yes").exit_code == Exit.REFUSED, "a wallet may not"
    owner.document("treasury", "pause", *by)
    assert owner.document("exit", "status")["paused"]
    refused = owner.run("treasury", "unpause", *by)
    assert (refused.exit_code, "does not have the role" in refused.stderr) == (Exit.REFUSED, True)
    owner.contracts.chain.ask("evm_revert", before)


def test_a_deployment_prints_the_settings_that_use_it(owner: Owner) -> None:
    roles = [address_of_key(number) for number in (OPERATOR, GUARDIAN, ANCHOR)]
    named = ("--operator", roles[0], "--guardian", roles[1], "--anchor", roles[2])
    unsaid = owner.run("treasury", "deploy", *named, "--yes")
    assert (unsaid.exit_code, "--mock-token" in unsaid.stderr) == (Exit.USAGE, True)
    other = owner.run("treasury", "deploy", "--token", "0x" + "77" * 20, *named, "--yes")
    assert (other.exit_code, "no token of 6 decimals" in other.stderr) == (Exit.USAGE, True)
    done = owner.run("treasury", "deploy", "--mock-token", *named, "--yes")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("mined: ") == 6, "each step is said"
    settings = dict(line.split("=") for line in done.stdout.splitlines())
    assert settings["OFFPEAK_CHAIN_ID"] == "31337"
    assert owner.document("exit", "status", **settings)["available"] == "0.000000000"


def test_a_deployer_without_coins_is_told_before_anything_is_sent(owner: Owner) -> None:
    named = ("--operator", f"0x{1:040x}", "--guardian", f"0x{2:040x}", "--anchor", f"0x{3:040x}")
    chain = owner.contracts.chain
    before = chain.ask("evm_snapshot")
    chain.set_gas_money(owner.address, 0)
    refused = owner.run("treasury", "deploy", "--mock-token", *named, "--yes")
    assert (refused.exit_code, "send native coins" in refused.stderr) == (Exit.FUNDS, True)
    assert "sending" not in refused.stderr
    chain.ask("evm_revert", before)
