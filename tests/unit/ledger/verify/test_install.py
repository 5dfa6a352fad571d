"""`offpeak-verify` runs with the base install alone, and without a network."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.ledger.verify.running import INSTALLED, MODULE, Ended, make_folder, run

__all__ = ["make_folder"]


def can_unshare() -> bool:
    tried = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="this machine lets nobody unshare the network")
@pytest.mark.parametrize("target", ["receipt.json", "all"])
def test_it_needs_no_network(folder: Path, target: str) -> None:
    installed = [str(INSTALLED)] if INSTALLED.exists() else MODULE
    ended = run(
        folder / target, "--policy", folder / "policy.txt", "--prev", folder / "last",
        command=["unshare", "-rn", *installed],
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")


FOREIGN = (
    "app supplier_agent pricing fastapi sqlalchemy httpx asyncio socket ssl pydantic typer rich"
)
BASE = {
    "coincurve",
    "sha3",
    "_pysha3",
    "rfc8785",
    "cryptography",
    "cffi",
    "_libsecp256k1",
    "_openssl",
    "_cffi_backend",
    "ledger",
}


def test_only_the_base_install_is_imported(folder: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); from ledger.verify.cli import main"
        "; main(sys.argv[1:]); sys.stderr.write(' '.join(sorted(set(sys.modules) - before)))"
    )
    ended = verify_with(["-c", code], folder)
    names = {name.split(".")[0] for name in ended.err.split()}
    assert not names & set(FOREIGN.split())
    assert names - set(sys.stdlib_module_names) <= BASE, names - set(sys.stdlib_module_names) - BASE


def verify_with(start: list[str], folder: Path) -> Ended:
    return run(
        folder / "receipt.json", "--policy", folder / "policy.txt", "--json",
        command=[sys.executable, *start],
    )  # fmt: skip
