"""The all-in-one's chain: kept over restarts, left out where there is none, never swapped."""

import asyncio
import os
from pathlib import Path

import pytest

from app.chain.contracts import TreasuryContract
from app.chain.rpc import open_rpc
from app.config import Settings
from app.embedded.chain import (
    EXIT_DELAY_SECONDS,
    ChainMissing,
    DevelopmentChain,
    keystore_of,
    running_chain,
)
from app.embedded.development import DevelopmentHome
from app.embedded.npm import can_have_anvil
from ledger.signing import SigningKey
from tests.waiting import wait_until

needs_anvil = pytest.mark.skipif(
    not can_have_anvil(os.environ), reason="the development chain needs node and npm"
)


@pytest.fixture
def home(tmp_path: Path) -> DevelopmentHome:
    home = DevelopmentHome(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture
def without_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing on PATH, nothing in the cache."""
    monkeypatch.delenv("OFFPEAK_ANVIL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def held(chain: DevelopmentChain, wallet: bytes) -> int:
    async def ask() -> int:
        async with open_rpc([chain.url]) as rpc:
            treasury = TreasuryContract(rpc, chain.deployed.treasury)
            return await treasury.available(SigningKey(wallet).address, "finalized")

    return asyncio.run(ask())


@needs_anvil
def test_a_home_keeps_its_chain_and_what_is_on_it(home: DevelopmentHome) -> None:
    wallet = home.wallet_key()
    with running_chain(home, persistent=True, say=print) as first:
        assert first is not None
        assert first.deposit(wallet, 150).amount == 150
        wait_until(lambda: held(first, wallet) == 150, timeout_seconds=10)
    with running_chain(home, persistent=True, say=print) as second:
        assert second is not None
        assert second.deployed == first.deployed
        assert held(second, wallet) == 150
    private = [keystore_of(home, role) for role in ("admin", "operator", "guardian", "anchor")]
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}


@needs_anvil
def test_the_settings_of_a_chain_are_ones_that_a_gateway_starts_with(
    home: DevelopmentHome,
) -> None:
    with running_chain(home, persistent=False, say=print) as chain:
        assert chain is not None
        given = {
            name.removeprefix("OFFPEAK_").lower(): text for name, text in chain.settings().items()
        }
    settings = Settings.model_validate({"database_url": "postgresql://nobody@nowhere/x", **given})
    longest = settings.run_seconds_max + 60 + 2 * settings.commit_interval_seconds
    assert longest < EXIT_DELAY_SECONDS


@pytest.mark.usefixtures("without_node")
def test_without_node_the_home_goes_on_without_a_chain_and_says_so(home: DevelopmentHome) -> None:
    said: list[str] = []
    for _ in range(2):
        with running_chain(home, persistent=True, say=said.append) as chain:
            assert chain is None
    assert "the money is made up" in said[0]
    assert "was made without a chain" in said[1]


@pytest.mark.usefixtures("without_node")
def test_a_home_that_has_a_chain_does_not_start_without_it(home: DevelopmentHome) -> None:
    address = f"0x{7:040x}"
    home.remember(
        "chain.json",
        {"chain_id": 31_337, "token": address, "treasury": address, "anchor": address, "block": 1},
    )
    with (
        pytest.raises(ChainMissing, match="has a chain"),
        running_chain(home, persistent=True, say=print),
    ):
        pass


def test_a_home_that_sold_before_keeps_its_made_up_money(home: DevelopmentHome) -> None:
    home.remember("supplier.json", {"supplier": "sup_1", "agent": "agent_1"})
    said: list[str] = []
    with running_chain(home, persistent=True, say=said.append) as chain:
        assert chain is None
    assert said == ["this home was made without a chain: its money is made up"]
