"""A supplier gets all that its agent needs by one command, with the supplier's install alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.program import app
from supplier_agent.release import load_release, verify_files

GATEWAY_ONLY = (
    "alembic", "eth_account", "fastapi", "httpx", "jinja2", "psycopg", "redis", "sqlalchemy",
    "tokenizers", "uvicorn",
)  # fmt: skip


@pytest.mark.engine
def test_what_is_fetched_passes_the_agents_own_check(tmp_path: Path) -> None:
    command = ["fetch", "smollm2-135m-instruct", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert CliRunner().invoke(app, command).stdout == done.stdout
    told = json.loads(done.stdout)
    release = load_release(Path(told["release"]))
    assert release.folder == tmp_path / release.id
    verify_files(release, Path(told["weights"]))
    assert {path.suffix for path in release.folder.iterdir()} <= {
        ".json",
        ".jinja",
        ".gguf",
        ".txt",
    }


def test_fetching_needs_nothing_that_only_a_gateway_has() -> None:
    code = (
        "import sys, app.cli.program, app.cli.fetch, app.embedded.weights, app.models.catalogue\n"
        f"print([name for name in {GATEWAY_ONLY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_release_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["fetch", "nothing", str(tmp_path)])
    assert "nothing" in done.stderr
    assert "unknown-model" in done.stderr


def test_the_faulty_engine_says_in_one_line_that_its_release_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "supplier_agent.engine.faults", "--release", str(tmp_path / "no")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "No such file or directory" in done.stderr
