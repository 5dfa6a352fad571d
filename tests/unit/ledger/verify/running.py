"""Runs `offpeak-verify` as people do, and looks at how it ended."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ledger.verify.checking import good, world

ROOT = Path(__file__).parents[4]
INSTALLED = Path(sys.executable).with_name("offpeak-verify")
MODULE = [sys.executable, "-m", "ledger.verify"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(*arguments: str | Path, command: Sequence[str] = MODULE, **options: Any) -> Ended:
    done = subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **options.pop("env", {})},
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )
    ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ended.err, ended.err
    return ended


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path) -> Path:
    """A policy, one good receipt, and a folder of all."""
    (tmp_path / "policy.txt").write_text(world().policy())
    (tmp_path / "receipt.json").write_bytes(good().encode())
    (tmp_path / "all").mkdir()
    for number, job in enumerate(world().jobs[:-1]):
        (tmp_path / "all" / f"{number:02}.json").write_bytes(world().receipt(job).encode())
    return tmp_path


def verify(folder: Path, *arguments: str | Path) -> Ended:
    return run(*arguments, "--policy", folder / "policy.txt")
