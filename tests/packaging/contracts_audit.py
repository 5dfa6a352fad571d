"""Runs slither and halmos over the contracts. `python -m tests.packaging.contracts_audit`.

Each lives in an environment of its own under `.cache/`: their pins fit neither ours nor one
another's. Every finding is fixed, or has its row in docs/explanation/contract-audit.md and its name
in `EXPLAINED`; a finding without one, or a rule that does not hold, ends the run with 1.
`make contracts-audit` runs it. It takes minutes and is no part of the tests.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests import npm
from tests.packaging.contracts import CONTRACTS

TOOLS: Final = {"slither": "slither-analyzer==0.11.6", "halmos": "halmos==0.3.3"}
SOLVER_TIMEOUT: Final = "120s"
LOOP_BOUND: Final = "4"
EXPLAINED: Final = {
    ("assembly", "SignatureProbe"),
    ("costly-loop", "Treasury"),
    ("incorrect-equality", "Treasury"),
    ("low-level-calls", "SignatureProbe"),
    ("missing-inheritance", "MockUSDC"),
    ("naming-convention", "MockUSDC"),
    ("reentrancy-benign", "Treasury"),
    ("timestamp", "MockUSDC"),
    ("timestamp", "Treasury"),
    ("uninitialized-state", "ReceiptAnchor"),
    ("unused-return", "MockUSDC"),
    ("unused-return", "SignatureProbe"),
    ("unused-return", "Treasury"),
}
"""(detector, contract), each with its reason in docs/explanation/contract-audit.md."""


def program(tool: str) -> Path:
    """The tool's program, installed once."""
    pinned = TOOLS[tool]
    folder = npm.CACHE / f"audit-{pinned}"
    found = folder / "bin" / tool
    if not found.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "-q", pinned], check=True)
    return found


def prepare(work: Path) -> dict[str, str]:
    """Copy sources and symbolic rules to `work`; the environment that compiles them there."""
    modules = npm.installed(CONTRACTS / "package.json") / "node_modules"
    (forge,) = (modules / "@foundry-rs").glob("forge-*/bin/forge")
    for name in ("src", "test/support", "symbolic"):
        shutil.copytree(CONTRACTS / name, work / name)
    for name in ("foundry.toml", "solc.cjs"):
        shutil.copy(CONTRACTS / name, work / name)
    (work / "node_modules").symlink_to(modules)
    path = os.pathsep.join([str(forge.parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "FOUNDRY_TEST": "symbolic"}


def slither(work: Path, environ: dict[str, str]) -> bool:
    """Whether slither read every contract and found only what is explained."""
    build = ["forge", "build", "--build-info", "--skip", "symbolic/**"]
    subprocess.run(build, cwd=work, env=environ, check=True, stdout=subprocess.DEVNULL)
    report = work / "slither.json"
    run = subprocess.run(
        [
            str(program("slither")), ".", "--ignore-compile", "--filter-paths", "node_modules",
            "--json", str(report),
        ],
        cwd=work,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    unread = [line for line in run.stderr.splitlines() if "Impossible to generate IR" in line]
    findings = json.loads(report.read_text("utf-8"))["results"].get("detectors", [])
    found = {(finding["check"], contract_of(finding)) for finding in findings}
    for check, contract in sorted(found | EXPLAINED):
        if (check, contract) not in EXPLAINED:
            print(f"slither: NOT EXPLAINED {check} in {contract}")
        elif (check, contract) not in found:
            print(f"slither: explained, no longer found: {check} in {contract}")
    print(f"slither: {len(findings)} findings of {len(found)} kinds, {len(unread)} parts not read")
    return not unread and found <= EXPLAINED


def contract_of(finding: dict[str, Any]) -> str:
    """The contract that a finding's first element belongs to."""
    element = finding["elements"][0]
    if element["type"] == "contract":
        return str(element["name"])
    return str(element["type_specific_fields"]["parent"]["name"])


def halmos(work: Path, environ: dict[str, str]) -> bool:
    """Whether halmos found no argument that breaks a rule."""
    run = subprocess.run(
        [
            str(program("halmos")), "--contract", "TreasuryRules", "--loop", LOOP_BOUND,
            "--solver-timeout-assertion", SOLVER_TIMEOUT, "--no-status",
        ],
        cwd=work,
        env=environ,
        check=False,
    )  # fmt: skip
    return run.returncode == 0


def main() -> int:
    """Run both; 0 when nothing is left to explain."""
    npm.CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=npm.CACHE) as made:
        work = Path(made)
        environ = prepare(work)
        good = slither(work, environ)
        return 0 if halmos(work, environ) and good else 1


if __name__ == "__main__":
    sys.exit(main())
