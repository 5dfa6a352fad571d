"""The all-in-one as a whole: it says when it is up, and ends when its parent ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.embedded.npm import can_have_anvil
from tests.integration.cli.running import ROOT, offpeak
from tests.waiting import has_ended, wait_until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]


def start_up(home: Path) -> "subprocess.Popen[str]":
    """Start `offpeak up` on a free port."""
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "up", "--json", "--port", "0", "--home", str(home)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def told(process: "subprocess.Popen[str]") -> dict[str, str]:
    """Return the one JSON document that `up --json` prints when it is up."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.rstrip() == "}":
            break
    document: dict[str, str] = json.loads("".join(lines))
    return document


def family(pid: int) -> list[int]:
    """Return the ids of all processes below one."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def ask_once(home: Path) -> str:
    """Ask something; return the record's place in the wallet's sequence."""
    asked = offpeak(home, "ask", "Say hello.", "--max-tokens", "8", "--yes", "--json")
    assert asked.returncode == 0, asked.stderr
    sequence: str = json.loads(asked.stdout)["job"]["record"]["message"]["payerSeq"]
    return sequence


def test_up_keeps_its_data_and_leaves_nothing_running_however_it_ends(tmp_path: Path) -> None:
    first = start_up(tmp_path)
    wallet = told(first)["wallet"]
    children = family(first.pid)
    assert len(children) >= 10, "guards, engines, gateway, worker, agent, model"
    assert ask_once(tmp_path) == "1"
    private = [path for path in tmp_path.iterdir() if path.is_file()]
    assert {path.name for path in private if path.stat().st_mode & 0o077} == set()
    assert {"wallet.json", "wallet.password", "settings.env"} <= {path.name for path in private}
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 0
    wait_until(lambda: all(has_ended(pid) for pid in children), timeout_seconds=60)
    assert not (tmp_path / "up.json").exists()

    second = start_up(tmp_path)
    assert told(second)["wallet"] == wallet
    children = family(second.pid)
    assert ask_once(tmp_path) == "2"
    if can_have_anvil(os.environ):
        status = offpeak(tmp_path, "treasury", "status", "--json")
        assert status.returncode == 0, status.stderr
        assert json.loads(status.stdout)["chain"]["events"] >= 1, "the chain is the first one's"
    second.kill()
    second.communicate(timeout=60)
    wait_until(lambda: all(has_ended(pid) for pid in children), timeout_seconds=60)
