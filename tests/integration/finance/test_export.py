"""Exports from a real database: whole, repeatable, refused while anything may still change."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.finance.export.writer import Format
from tests.integration.books import Books, wallet
from tests.integration.finance.exporting import Exporter, at
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
