"""Gateway and worker against a chain that does not fit the settings, or that nobody answers for."""

import asyncio
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from app.chain.checks import ChainIdDiffers, ContractMissing
from app.chain.errors import RpcUnavailable
from app.cli.exits import Exit
from app.config import Settings
from app.main import build_app
from app.worker import build_worker
from tests.chain import CHAIN_ID, Contracts

ROOT = Path(__file__).parents[3]
KEYS = ("signing_key", "content_key", "checkpoint_key")
SECRETS = {name: secrets.token_hex(32) for name in KEYS}
NO_NODE = "http://127.0.0.1:9"


@pytest.fixture
def given(database_url: str, contracts: Contracts) -> dict[str, str]:
    """Settings that fit the chain."""
    return {
        **SECRETS,
        "database_url": database_url,
        "rpc_urls": contracts.chain.url,
        "chain_id": str(CHAIN_ID),
        "token_address": contracts.token,
        "treasury_address": contracts.treasury,
        "receipt_anchor_address": contracts.anchor,
    }


async def serve_once(given: dict[str, str]) -> bool | None:
    """Start and stop a gateway: whether it has checked its chain."""
    app = build_app(Settings.model_validate(given))
    async with app.router.lifespan_context(app):
        guard = app.state.gateway.chain_guard
        return None if guard is None else bool(guard.checked)


async def work_once(given: dict[str, str]) -> None:
    stop = asyncio.Event()
    stop.set()
    await build_worker(Settings.model_validate(given)).run(stop)


async def test_a_fitting_chain_is_checked_at_the_start(given: dict[str, str]) -> None:
    assert await serve_once(given) is True
    await work_once(given)


async def test_without_urls_there_is_no_chain_to_check(given: dict[str, str]) -> None:
    del given["rpc_urls"]
    assert await serve_once(given) is None
    await work_once(given)


async def test_neither_starts_on_the_wrong_chain_or_without_the_contracts(
    given: dict[str, str],
) -> None:
    for wrong, refusal in (
        ({"chain_id": "1337"}, ChainIdDiffers),
        ({"treasury_address": "0x" + "ab" * 20}, ContractMissing),
    ):
        with pytest.raises(refusal):
            await serve_once(given | wrong)
        with pytest.raises(refusal):
            await work_once(given | wrong)


async def test_without_a_node_the_gateway_serves_unchecked_and_the_worker_does_not_start(
    given: dict[str, str],
) -> None:
    assert await serve_once(given | {"rpc_urls": NO_NODE}) is False
    with pytest.raises(RpcUnavailable):
        await work_once(given | {"rpc_urls": NO_NODE})


@pytest.mark.parametrize("command", ["serve", "work"])
def test_the_command_says_what_differs_and_what_to_do(
    given: dict[str, str], command: str, tmp_path: Path
) -> None:
    wrong = given | {"receipt_anchor_address": "0x" + "ab" * 20, "port": "0"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFPEAK_")}
    variables = {f"OFFPEAK_{name.upper()}": value for name, value in wrong.items()}
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", command],
        env={**kept, **variables, "OFFPEAK_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == Exit.SETTINGS
    assert "contract-missing" in done.stderr
    assert "offpeak treasury deploy" in done.stderr
    assert all(secret not in done.stderr for secret in SECRETS.values())
