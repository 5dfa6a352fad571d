"""The program's shape: help, exit codes, and how failures are told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.exits import BY_CODE, MEANINGS, Exit
from app.cli.program import app, without_debug
from supplier_agent.protocol.request import OUTPUT_TOKEN_LIMIT

HEAVY = ("eth_account", "sqlalchemy", "fastapi", "web3", "psycopg", "httpx", "pydantic")
COMMANDS = (
    "up",
    "demo",
    "serve",
    "work",
    "migrate",
    "check",
    "wallet new",
    "wallet show",
    "wallet balance",
    "models",
    "capacity",
    "fetch",
    "quote",
    "ask",
    "job list",
    "job show",
    "job record",
    "dev fund",
    "supplier list",
    "supplier register",
    "supplier authorize",
    "supplier suspend",
    "ledger check",
    "finance statement",
    "finance correct",
    "finance reconcile",
    "finance period list",
    "finance period soft-close",
    "finance period reopen",
    "finance period close",
)
NOT_SERVED = {"OFFPEAK_URL": "http://127.0.0.1:9"}


def offpeak(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFPEAK_")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env={**kept, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from app.cli.program import app\n"
        "try:\n    app(['--help'])\n"
        "except SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0
    assert "Example: " in done.stdout


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in ("serve", "work")])
def test_every_command_that_prints_data_can_print_json(command: str) -> None:
    assert "--json" in CliRunner().invoke(app, [*command.split(), "--help"]).stdout


def test_no_option_takes_a_key() -> None:
    for command in COMMANDS:
        shown = CliRunner().invoke(app, [*command.split(), "--help"]).stdout
        assert "--private-key" not in shown
        assert "--key " not in shown


def test_help_shows_every_exit_code() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for code, meaning in MEANINGS.items():
        assert f"{int(code):>3}  {meaning}" in shown
    assert set(MEANINGS) == set(Exit)
    assert set(BY_CODE.values()) <= set(Exit)


def test_an_unreachable_gateway_is_one_line_with_the_next_step() -> None:
    done = offpeak("models", **NOT_SERVED)
    assert done.returncode == Exit.UNREACHABLE
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert lines[0].startswith("offpeak: http://127.0.0.1:9 does not answer")
    assert lines[1].startswith("  next: ")
    assert len(lines) == 2


def test_a_failure_can_be_told_as_json() -> None:
    done = offpeak("models", "--json", **NOT_SERVED)
    assert done.returncode == Exit.UNREACHABLE
    assert json.loads(done.stderr)["error"]["code"] == "gateway-unreachable"


def test_a_traceback_is_shown_only_on_request() -> None:
    assert "Traceback" in offpeak("--debug", "models", **NOT_SERVED).stderr


def test_debug_may_stand_after_the_command() -> None:
    assert "Traceback" in offpeak("models", "--debug", **NOT_SERVED).stderr
    assert without_debug(["ask", "--debug", "--", "--debug"]) == ["ask", "--", "--debug"]


def test_the_books_of_a_home_that_is_not_up_say_to_start_it(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_text("OFFPEAK_DATABASE_URL='postgresql://127.0.0.1:9/x'\n")
    for command in (("ledger", "check"), ("migrate",), ("dev", "fund")):
        done = offpeak(*command, "--home", str(tmp_path))
        assert done.returncode == Exit.UNREACHABLE, done.stderr
        assert "start `offpeak up` (or `make up`) first" in done.stderr


def test_bytes_that_are_no_text_are_refused_as_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "quote", b"caf\xff"],
        capture_output=True,
        check=False,
        env={**os.environ, **NOT_SERVED},
    )
    assert done.returncode == Exit.USAGE
    assert b"the prompt is not UTF-8 (bad-input)" in done.stderr


def test_wrong_usage_has_its_own_exit_code() -> None:
    assert offpeak("ask").returncode == Exit.USAGE
    for tokens in ("0", str(OUTPUT_TOKEN_LIMIT + 1)):
        assert offpeak("quote", "hello", "--max-tokens", tokens).returncode == Exit.USAGE


def test_missing_settings_are_named() -> None:
    done = offpeak("check", "--home", "/nonexistent")
    assert done.returncode == Exit.SETTINGS
    assert "OFFPEAK_DATABASE_URL: Field required" in done.stderr


def test_check_shows_settings_and_hides_secrets() -> None:
    url = "postgresql://owner:hunter2@127.0.0.1:5432/offpeak"
    done = offpeak("check", "--json", "--home", "/nonexistent", OFFPEAK_DATABASE_URL=url)
    assert done.returncode == 0
    assert "hunter2" not in done.stdout + done.stderr
    assert json.loads(done.stdout)["environment"] == "development"


def test_check_warns_of_a_variable_that_nothing_reads() -> None:
    url = "postgresql://127.0.0.1:5432/offpeak"
    done = offpeak("check", OFFPEAK_DATABASE_URL=url, OFFPEAK_REDIS_ULR="redis://cache")
    assert done.returncode == 0
    assert "OFFPEAK_REDIS_ULR is no setting" in done.stderr
    assert "did you mean OFFPEAK_REDIS_URL?" in done.stderr
    quiet = offpeak("check", OFFPEAK_DATABASE_URL=url, OFFPEAK_AGENT_SLOTS="2", OFFPEAK_URL="x")
    assert quiet.stderr == ""


def test_the_version_is_told() -> None:
    assert offpeak("--version").stdout.startswith("offpeak ")


def test_an_example_of_two_lines_stays_two_lines() -> None:
    lines = offpeak("up", "--help").stdout.splitlines()
    assert any(line.strip() == "Example: offpeak up" for line in lines)


def test_dev_fund_does_not_exist_in_production() -> None:
    done = offpeak("dev", "fund", OFFPEAK_ENVIRONMENT="production")
    assert done.returncode == Exit.USAGE
    assert "dev" not in offpeak("--help", OFFPEAK_ENVIRONMENT="production").stdout
    assert "dev" in offpeak("--help").stdout
