"""The commands' contracts: light help (pydantic is typer's own), exit codes, data on stdout."""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.supplier_agent.samples import AGENT
from tests.unit.supplier_agent.test_release import write_release

HEAVY = ("aiohttp", "websockets", "xllamacpp", "cryptography", "structlog", "uvloop")
PROBE = f"""
import atexit, sys
atexit.register(lambda: print("HEAVY", *(m for m in {HEAVY!r} if m in sys.modules)))
from supplier_agent.cli import main
sys.argv = ["offpeak-agent", "run", "--help"]
main()
"""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from supplier_agent.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1].split() == ["HEAVY"]
    assert "Example" in done.stdout


def test_key_shows_the_public_half_only(tmp_path: Path) -> None:
    path = tmp_path / "device.key"
    done = command("key", "--key-file", str(path), "--json")

    assert done.returncode == 0
    public = json.loads(done.stdout)["public_key"]
    assert len(bytes.fromhex(public)) == 32
    assert path.read_text().strip() not in done.stdout + done.stderr
    assert command("key", "--key-file", str(path)).stdout.strip() == public


def test_a_key_file_others_can_read_exits_3(tmp_path: Path) -> None:
    path = tmp_path / "device.key"
    command("key", "--key-file", str(path))
    path.chmod(0o644)
    done = command("key", "--key-file", str(path), "--json")

    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["code"] == "bad-key-file"
    assert "chmod 600" in done.stderr


def test_other_weights_than_the_releases_exit_4(tmp_path: Path) -> None:
    weights = tmp_path / "model.gguf"
    weights.write_bytes(b"another model")
    done = command(
        *("run", "--json", "--gateway", "http://127.0.0.1:1", "--agent-id", AGENT),
        *("--key-file", str(tmp_path / "device.key"), "--deployment", "demo", "--ask", "0.1"),
        *("--release", str(write_release(tmp_path)), "--weights", str(weights)),
    )

    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["code"] == "wrong-weights"


def test_missing_settings_exit_2_and_are_named() -> None:
    done = command("run", "--deployment", "demo")

    assert done.returncode == 2
    assert "gateway" in done.stderr
    assert done.stdout == ""
