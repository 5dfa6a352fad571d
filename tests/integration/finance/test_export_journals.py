"""hledger and beancount read our journals, and refuse them when one nano is another."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.finance.export.writer import Format
from app.finance.interval import parse_interval
from tests.integration.finance.exporting import Exporter

JOURNALS = [
    pytest.param(
        Format.HLEDGER,
        marks=pytest.mark.skipif(
            shutil.which("hledger") is None, reason="hledger is not installed"
        ),
    ),
    Format.BEANCOUNT,
]


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def check_journal(path: Path) -> bool:
    if path.suffix == ".journal":
        return tool("hledger", "check", "--strict", "-f", str(path)).returncode == 0
    found = tool(str(Path(sys.executable).with_name("bean-check")), str(path))
    return found.returncode == 0 and not found.stderr


@pytest.mark.parametrize("kind", JOURNALS)
async def test_the_real_program_accepts_the_journal_and_refuses_one_nano_more(
    exporter: Exporter, tmp_path: Path, kind: Format
) -> None:
    await exporter.export(tmp_path / "november", kind)
    [path] = [p for p in (tmp_path / "november").iterdir() if p.stem == "offpeak"]
    whole = path.read_text()
    assert check_journal(path)
    lines = whole.split("\n")
    amounts = [
        number
        for number, line in enumerate(lines)
        if re.search(r"\.[0-9]{9} ", line) and not line.startswith("commodity")
    ]
    assert len(amounts) > 40
    for number in amounts[::3]:
        path.write_text("\n".join([*lines[:number], one_more(lines[number]), *lines[number + 1 :]]))
        assert not check_journal(path), lines[number]


@pytest.mark.parametrize("kind", JOURNALS)
async def test_a_leg_that_moved_one_nano_more_on_both_sides_breaks_a_balance(
    exporter: Exporter, tmp_path: Path, kind: Format
) -> None:
    await exporter.export(tmp_path / "november", kind)
    [path] = [p for p in (tmp_path / "november").iterdir() if p.stem == "offpeak"]
    lines = path.read_text().split("\n")
    [first, *_] = [n for n, line in enumerate(lines) if "wallet to fee" in line]
    legs = [n for n in range(first, first + 7) if "000007" in lines[n]][:2]
    for number in legs:
        lines[number] = one_more(lines[number])
    path.write_text("\n".join(lines))
    assert not check_journal(path)


@pytest.mark.parametrize("kind", JOURNALS)
async def test_any_interval_adds_up_and_closes_where_the_next_one_opens(
    exporter: Exporter, tmp_path: Path, kind: Format
) -> None:
    cut = "2025-11-30T23:59:59Z"
    for name, interval in (
        ("before", parse_interval("2025-10-31T12:00:00Z", cut)),
        ("after", parse_interval(cut, "2025-12-02T01:02:03Z")),
    ):
        await exporter.export(tmp_path / name, kind, interval)
    found = {}
    for name in ("before", "after"):
        [path] = [p for p in (tmp_path / name).iterdir() if p.stem == "offpeak"]
        assert check_journal(path)
        found[name] = path.read_text()
    closing, opening = asserted(found["before"])[-1], asserted(found["after"])[0]
    assert opening
    assert closing.items() >= opening.items()


def asserted(text: str) -> list[dict[str, str]]:
    """Return the balances asserted per account: at the first and at the last day."""
    pattern = r"balance (\S+)  (\S+) ~ 0|(\S+)  \S+ \S+ = (\S+)"
    found = [(m[1] or m[3], m[2] or m[4]) for m in re.finditer(pattern, text)]
    half = len(found) // 2
    return [dict(found[:half]), dict(found[half:])]


def one_more(line: str) -> str:
    """Return the line with its first amount changed by one nano."""
    first = re.search(r"\.[0-9]{9}", line)
    assert first is not None
    return f"{line[: first.start()]}.{int(first[0][1:]) + 1:09d}{line[first.end() :]}"
