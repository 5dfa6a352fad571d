"""The all-in-one as a whole: it says when it is up, and ends when its parent ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_up_however_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    process = start_up(tmp_path)
    up = told(process)
    assert up["gateway"].startswith("http://127.0.0.1:")
    children = family(process.pid)
    assert len(children) >= 10, "guards, engines, gateway, worker, agent, model"
    process.send_signal(number)
    status = process.wait(timeout=60)
    assert status == (0 if number is signal.SIGINT else -signal.SIGKILL)
    wait_until(lambda: all(has_ended(pid) for pid in children), timeout_seconds=60)


def test_up_goes_on_with_its_data_and_its_wallet(tmp_path: Path) -> None:
    wallets = []
    for _ in range(2):
        process = start_up(tmp_path)
        wallets.append(told(process)["wallet"])
        asked = offpeak(tmp_path, "ask", "Say hello.", "--max-tokens", "8", "--yes", "--json")
        assert asked.returncode == 0, asked.stderr
        sequence = json.loads(asked.stdout)["job"]["record"]["message"]["payerSeq"]
        assert sequence == str(len(wallets))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert wallets[0] == wallets[1]


def test_every_secret_of_the_home_is_private(tmp_path: Path) -> None:
    process = start_up(tmp_path)
    told(process)
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    for path in tmp_path.iterdir():
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path.name
    assert not (tmp_path / "up.json").exists()
