"""Somebody who reads only the README gets what it says: its commands are run as they stand."""

import json
import os
import re
import shlex
import subprocess
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
@pytest.mark.parametrize("line", named(README, ".venv/bin/offpeak "))
def test_every_command_of_the_readme_works(stack: Stack, line: str) -> None:
    done = run(stack, line)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip()


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
        done = run(stack, line.partition(";")[0].replace("JOB_ID", job))
        refused = "0.000000001" in line
        if " ask " in line and not refused:
            assert "not confirmed" in done.stderr
            done = run(stack, line + " --yes")
            job = re.findall(r"job_[0-9a-f-]{36}", done.stderr)[0]
        assert done.exit_code == (9 if refused else 0), (line, done.stderr)


def run(stack: Stack, line: str) -> Result:
    """Run a command as it stands, in the folder that `.offpeak` lies in."""
    outer = {name: None for name in os.environ if name.startswith(("OFFPEAK_", "ETH_"))}
    with chdir(stack.home.path.parent):
        return CliRunner(env=outer).invoke(app, shlex.split(line)[1:])
