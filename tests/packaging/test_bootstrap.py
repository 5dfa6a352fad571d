import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / ".ci" / "requirements.txt").read_text()
PINS = {
    name: Version(version)
    for name, version in re.findall(
        r"^([a-z0-9.\-]+)(?:\[[a-z,]+\])?==([^ ;\\]+)", LOCK, re.MULTILINE
    )
}


def wanted() -> list[Requirement]:
    extras = [
        line for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines
    ]
    lines = [*PROJECT["project"]["dependencies"], *extras, *PROJECT["dependency-groups"]["dev"]]
    found = [Requirement(line) for line in lines]
    return [each for each in found if each.name != PROJECT["project"]["name"]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the bootstrap reads, without the rest."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(checkout: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", "environment", *arguments],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("requirement", wanted(), ids=lambda each: each.name)
def test_every_dependency_is_pinned_as_the_project_asks(requirement: Requirement) -> None:
    pinned = PINS[requirement.name.lower().replace("_", "-")]
    assert requirement.specifier.contains(pinned, prereleases=True)


@pytest.mark.parametrize("name", ["requirements.txt", "no-deps.txt"])
def test_every_pin_has_hashes_and_there_are_no_addresses(name: str) -> None:
    text = re.sub(r"^#.*\n", "", (ROOT / ".ci" / name).read_text(), flags=re.MULTILINE)
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(re.findall(r"^\S+==", text, re.MULTILINE)) > 0
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text


def test_an_old_python_is_refused_with_a_way_out(checkout: Path) -> None:
    old = checkout / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    old.chmod(0o755)
    done = make(checkout, f"PYTHON={old}")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_missing_python_is_named(checkout: Path) -> None:
    done = make(checkout, "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "'no-such-python' was not found" in done.stderr


def test_an_up_to_date_environment_is_left_alone(checkout: Path) -> None:
    made_from = b"".join(
        (checkout / name).read_bytes()
        for name in (
            ".ci/requirements.txt",
            ".ci/no-deps.txt",
            "pyproject.toml",
            ".ci/environment",
        )
    )
    stamp = subprocess.run(["cksum"], input=made_from, capture_output=True, check=True).stdout
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / ".ready").write_bytes(stamp)
    done = make(checkout, "PYTHON=no-such-python")
    assert (done.returncode, done.stderr) == (0, "")
