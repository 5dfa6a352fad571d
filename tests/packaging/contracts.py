"""Compiles and tests the contracts, and writes their artifacts.

`python -m tests.packaging.contracts` builds `contracts/`, writes the artifacts and runs the
Foundry tests; with `build` it does only the first two. `make contracts` runs it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests import npm

CONTRACTS: Final = npm.ROOT / "contracts"
COMPILER: Final = "solc 0.8.37, optimizer 200 runs, evm cancun"
SHIPPED: Final = npm.ROOT / "app" / "chain" / "artifacts"
"""Package data: what the gateway and its commands deploy and call."""
FOR_TESTS: Final = npm.ROOT / "tests" / "contracts_artifacts"
PLACES: Final = {
    "Treasury": SHIPPED,
    "ReceiptAnchor": SHIPPED,
    "MockUSDC": SHIPPED,
    "SignatureProbe": SHIPPED,
    "SmartWallet": FOR_TESTS,
    "SmartWalletFactory": FOR_TESTS,
}
FORGE_SECONDS: Final = 300
"""A build takes 5 to 12 s on two free cores; many times that on busy ones."""


def forge(arguments: list[str], *, work: Path) -> subprocess.CompletedProcess[str]:
    """One run of npm's forge over `contracts/`; what it writes lies under `work`.

    The platform's own program is run: npm's start-up script hides its exit status.
    """
    modules = npm.installed(CONTRACTS / "package.json") / "node_modules"
    (program,) = (modules / "@foundry-rs").glob("forge-*/bin/forge")
    return subprocess.run(
        [
            str(program), *arguments, "--root", str(CONTRACTS),
            "--out", str(work / "out"), "--cache-path", str(work / "cache"),
            "--remappings", f"@openzeppelin/={modules}/@openzeppelin/",
        ],
        cwd=CONTRACTS,
        capture_output=True,
        text=True,
        timeout=FORGE_SECONDS,
        env={**os.environ, "NODE_PATH": str(modules), "NO_COLOR": "1"},
        check=False,
    )  # fmt: skip


def build(work: Path) -> dict[str, str]:
    """The text of each artifact, as a fresh build makes it."""
    run = forge(["build"], work=work)
    assert run.returncode == 0, run.stdout + run.stderr
    return {name: artifact(work / "out", name) for name in PLACES}


def artifact(out: Path, name: str) -> str:
    """The text of one contract's artifact out of forge's own."""
    made = json.loads((out / f"{name}.sol" / f"{name}.json").read_text("utf-8"))
    written = {
        "contractName": name,
        "abi": made["abi"],
        "bytecode": made["bytecode"]["object"],
        "compiler": COMPILER,
    }
    return json.dumps(written, indent=1) + "\n"


def path(name: str) -> Path:
    """Where a contract's artifact lies."""
    return PLACES[name] / f"{name}.json"


def main(arguments: list[str]) -> int:
    """Build, write the artifacts, and unless told `build` run the Foundry tests."""
    npm.CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=npm.CACHE) as made:
        for name, text in build(Path(made)).items():
            path(name).parent.mkdir(parents=True, exist_ok=True)
            path(name).write_text(text, "utf-8")
        print(f"contracts: {len(PLACES)} artifacts written")
        if arguments == ["build"]:
            return 0
        run = forge(["test"], work=Path(made))
        print(run.stdout + run.stderr)
        return run.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
