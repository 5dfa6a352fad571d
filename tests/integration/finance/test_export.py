"""Exports from a real database: whole, repeatable, refused while anything may still change."""

import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.finance.export.writer import Format
from tests.integration.books import Books, wallet
from tests.integration.finance.exporting import Exporter, at, policy, verify
from tests.integration.receipts.conftest import Archive, archive

__all__ = ["archive"]

BUYER, OTHER = wallet(1), wallet(2)


@pytest.fixture
async def exporter(archive: Archive, fresh_database_url: str) -> AsyncIterator[Exporter]:
    """An archive with two wallets' records in October, November and December of 2025."""
    with Books(fresh_database_url, role="none") as owner:
        exporter = Exporter(archive, owner)
        for when in (
            "2025-10-31 23:59:59",
            "2025-11-01 00:00:00",
            "2025-11-30 23:59:59",
            "2025-12-01 00:00:00",
        ):
            archive.end_jobs(BUYER, 3, charge=7)
            archive.end_jobs(OTHER, 2, charge=0)
            exporter.move(at(when))
            await archive.sign()
        await archive.sequencer(limit=8).run_once()
        yield exporter


@pytest.mark.parametrize("kind", Format)
async def test_a_rerun_is_the_same_bytes_and_logs_nothing_new(
    exporter: Exporter, tmp_path: Path, kind: Format
) -> None:
    first = await exporter.export(tmp_path / "one", kind)
    size = (await exporter.archive.reader.checkpoint()).size
    second = await exporter.export(tmp_path / "two", kind)
    assert (first.is_new, second.is_new) == (True, False)
    assert (await exporter.archive.reader.checkpoint()).size == size
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two
    assert first.manifest.records == 10


@pytest.mark.parametrize("kind", Format)
async def test_the_verifier_accepts_an_export_without_a_server(
    exporter: Exporter, tmp_path: Path, kind: Format
) -> None:
    await exporter.export(tmp_path / "november", kind)
    code, said = verify(tmp_path / "november", policy(exporter.archive))
    assert code == 0, said
    assert said["records"].startswith("10 records in 3 batches")


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def check_journal(path: Path) -> bool:
    if path.suffix == ".journal":
        return tool("hledger", "check", "--strict", "-f", str(path)).returncode == 0
    found = tool(str(Path(sys.executable).with_name("bean-check")), str(path))
    return found.returncode == 0 and not found.stderr


@pytest.mark.parametrize("kind", [Format.BEANCOUNT, Format.HLEDGER])
async def test_the_real_program_accepts_the_journal_and_refuses_one_nano_more(
    exporter: Exporter, tmp_path: Path, kind: Format
) -> None:
    await exporter.export(tmp_path / "november", kind)
    [path] = [p for p in (tmp_path / "november").iterdir() if p.stem == "offpeak"]
    whole = path.read_text()
    assert check_journal(path)
    lines = whole.split("\n")
    amounts = [
        n
        for n, line in enumerate(lines)
        if ".0000000" in line and "precision" not in line and "commodity 1000" not in line
    ]
    assert len(amounts) > 40
    for number in amounts:
        first = re.search(r"\.[0-9]{9}", lines[number])
        assert first is not None
        more = f".{int(first[0][1:]) + 1:09d}"
        changed = lines[number][: first.start()] + more + lines[number][first.end() :]
        path.write_text("\n".join([*lines[:number], changed, *lines[number + 1 :]]))
        if check_journal(path):
            print("ACCEPTED", lines[number - 2 : number + 3], changed)
