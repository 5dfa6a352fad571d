"""`offpeak finance export`: what it takes, prints and leaves behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from app.cli.exits import Exit
from app.finance.export.writer import Format
from tests.integration.cli.running import ROOT, invoked
from tests.integration.finance.exporting import Exporter, policy, verify
from tests.integration.receipts.conftest import environment
from tests.waiting import wait_until

Export = Callable[..., Result]


@pytest.fixture
def export(exporter: Exporter, tmp_path: Path) -> Export:
    def run(*arguments: str) -> Result:
        return invoked(tmp_path, "finance", "export", *arguments, **environment(exporter.url))

    return run


def test_a_month_is_exported_and_told_as_text_and_as_json(
    export: Export, exporter: Exporter, tmp_path: Path
) -> None:
    arguments = ("--month", "2025-11", "--format", "csv", "-o", str(tmp_path / "out"))
    done = export(*arguments)
    assert done.exit_code == 0, done.stderr
    assert "0.000000042 of 0xA5A5" in done.stdout
    assert "logged now" in done.stdout
    again = export(*arguments, "--json")
    told = json.loads(again.stdout)
    assert (told["records"], told["new"]) == (10, False)
    assert {each["name"] for each in told["files"]} == {
        "evidence.jsonl", "records.csv", "transfers.csv",
    }  # fmt: skip
    assert verify(tmp_path / "out", policy())[0] == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("--format", "csv"), Exit.USAGE),
        (("--month", "2025-11", "--format", "pdf"), Exit.USAGE),
        (("--month", "2025-11", "--from", "2025-11-01", "--format", "csv"), Exit.USAGE),
        (("--from", "2025-11-01", "--format", "csv"), Exit.USAGE),
        (("--from", "2025-11-02", "--to", "2025-11-01", "--format", "csv"), Exit.USAGE),
        (("--month", "2099-01", "--format", "csv"), Exit.TRY_LATER),
    ],
)
def test_what_cannot_be_exported_says_why(
    export: Export, tmp_path: Path, arguments: tuple[str, ...], exit_code: Exit
) -> None:
    done = export(*arguments, "-o", str(tmp_path / "out"))
    assert done.exit_code == exit_code, done.stderr
    assert done.stderr.startswith("offpeak: ")
    assert not (tmp_path / "out").exists()


def test_every_format_has_its_name_in_the_help(export: Export) -> None:
    shown = export("--help").stdout
    assert all(kind in shown for kind in Format)


def test_a_killed_export_leaves_no_folder_and_the_next_one_is_whole(
    export: Export, exporter: Exporter, tmp_path: Path
) -> None:
    """Killed while the accounts are locked away from it, so at a moment that is known."""
    exporter.owner.connection.execute("BEGIN")
    exporter.owner.connection.execute("LOCK TABLE offpeak.account IN ACCESS EXCLUSIVE MODE")
    process = subprocess.Popen(
        [
            sys.executable, "-m", "app.cli", "finance", "export", "--month", "2025-11",
            "--format", "csv", "-o", str(tmp_path / "out"),
        ],
        env={**os.environ, **environment(exporter.url), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until((tmp_path / ".out.partial" / "records.csv").exists)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    exporter.owner.connection.execute("ROLLBACK")
    assert not (tmp_path / "out").exists()

    done = export("--month", "2025-11", "--format", "jsonl", "-o", str(tmp_path / "out"))
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert verify(tmp_path / "out", policy())[0] == 0
