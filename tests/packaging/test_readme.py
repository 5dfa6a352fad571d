"""Somebody who reads only the README gets what it says: its commands are run as they stand."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.program import app
from app.embedded.stack import Stack

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial" / "first-request.md").read_text("utf-8")
KEEPING = README.partition("## Keep the receipt")[2].partition("\n## ")[0]
"""The part whose commands follow one another: its jobs are there once somebody has asked."""
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
GATEWAY = "http://127.0.0.1:8700"


def commands(page: str) -> list[str]:
    """Return the lines of the page's console blocks."""
    return [line for block in BLOCK.findall(page) for line in block.strip().splitlines()]


def named(page: str, *starts: str) -> list[str]:
    """Return the commands that begin with one of `starts`."""
    return [line for line in commands(page) if line.startswith(starts)]


@pytest.mark.parametrize("line", sorted({*named(README, "make "), *named(TUTORIAL, "make ")}))
def test_every_make_target_that_is_told_exists(line: str) -> None:
    command = ["make", "-n", *line.split()[1:]]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.engine
@pytest.mark.parametrize(
    "line",
    [line for line in named(README, ".venv/bin/offpeak ") if line not in commands(KEEPING)],
)
def test_every_command_of_the_readme_works(stack: Stack, line: str) -> None:
    if needs_chain(line) and stack.chain is None:
        pytest.skip("this all-in-one has no chain: node and npm are missing")
    done = run(stack, line)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.engine
def test_a_receipt_is_kept_and_checked_as_the_readme_says(stack: Stack) -> None:
    asked = run(stack, '.venv/bin/offpeak ask "One word." --max-tokens 8 --max 0.001 --yes')
    job = re.findall(r"job_[0-9a-f-]{36}", asked.stderr)[0]
    assert run(stack, ".venv/bin/offpeak log seal").exit_code == 0  # the worker does in a minute
    *fetching, checking = [line.replace("JOB_ID", job) for line in commands(KEEPING)]
    for line in fetching:
        done = run(stack, line)
        assert done.exit_code == 0, (line, done.stderr)
        assert done.stdout.strip(), line
    with chdir(stack.home.path.parent):
        command = [sys.executable, "-m", "ledger.verify", *shlex.split(checking)[1:]]
        verified = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert verified.returncode == 0, verified.stdout
    assert "VERIFIED" in verified.stdout


@pytest.mark.engine
@pytest.mark.parametrize("line", named(README, "curl "))
def test_every_address_of_the_readme_answers(stack: Stack, line: str) -> None:
    address = shlex.split(line)[-1]
    assert address.startswith(GATEWAY)
    with urllib.request.urlopen(stack.url + address.removeprefix(GATEWAY)) as answer:  # noqa: S310  # our own gateway
        assert json.load(answer)


@pytest.mark.engine
def test_the_tutorial_can_be_followed_to_its_end(stack: Stack) -> None:
    job = ""
    for line in named(TUTORIAL, ".venv/bin/offpeak "):
        if needs_chain(line) and stack.chain is None:
            continue
        done = run(stack, line.partition(";")[0].replace("JOB_ID", job))
        refused = "0.000000001" in line
        if " ask " in line and not refused:
            assert "not confirmed" in done.stderr
            done = run(stack, line + " --yes")
            job = re.findall(r"job_[0-9a-f-]{36}", done.stderr)[0]
        assert done.exit_code == (9 if refused else 0), (line, done.stderr)


def needs_chain(line: str) -> bool:
    """Return whether a command is about money on the chain."""
    return line.split()[1] in {"deposit", "withdraw", "treasury", "exit"}


def run(stack: Stack, line: str) -> Result:
    """Run a command as it stands, in the folder that `.offpeak` lies in."""
    outer = {name: None for name in os.environ if name.startswith(("OFFPEAK_", "ETH_"))}
    with chdir(stack.home.path.parent):
        return CliRunner(env=outer).invoke(app, shlex.split(line)[1:])
