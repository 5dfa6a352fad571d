"""Exports from a real database: whole, repeatable, refused while anything may still change."""

from pathlib import Path

import pytest

from app.finance.export.writer import Format
from tests.integration.finance.exporting import Exporter, policy, verify


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
    code, said = verify(tmp_path / "november", policy())
    assert code == 0, said
    assert said["records"].startswith("10 records in 3 batches")
