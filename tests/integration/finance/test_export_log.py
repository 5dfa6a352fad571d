"""The manifest's entry in the log: under the key of its place, on a log that has begun."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.finance.export.writer import Format
from app.receipts.appending import LogWriter
from app.receipts.check import LogCheck
from app.receipts.errors import CheckpointKeyRetired
from app.receipts.rotation import Rotation, rotate
from ledger.log_entry import EntryKind
from ledger.note import NoteSigner
from tests.integration.books import Books, wallet
from tests.integration.finance.exporting import Exporter, policy, verify
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, Archive, seed

SECOND = NoteSigner(ORIGIN, seed("second log"))


async def test_an_export_with_a_key_that_was_rotated_out_logs_nothing_and_the_next_one_verifies(
    exporter: Exporter, tmp_path: Path
) -> None:
    archive = exporter.archive
    await rotate(archive.database, archive.sequencer(), Rotation(checkpoint_key=SECOND))
    size = (await archive.reader.checkpoint()).size
    with pytest.raises(CheckpointKeyRetired):
        await exporter.export(tmp_path / "out", Format.CSV)
    archive.terms = replace(archive.terms, signer=SECOND)
    assert (await archive.sequencer().run_once()).checkpoints == 0
    made = await exporter.export(tmp_path / "out", Format.CSV)
    assert (made.log_index, made.is_new) == (size, True)
    assert verify(tmp_path / "out", policy())[0] == 0


async def test_an_export_made_again_after_a_rotation_is_the_one_that_was_logged(
    exporter: Exporter, tmp_path: Path
) -> None:
    archive = exporter.archive
    first = await exporter.export(tmp_path / "out", Format.CSV)
    await rotate(archive.database, archive.sequencer(), Rotation(checkpoint_key=SECOND))
    again = await exporter.export(tmp_path / "out", Format.CSV)
    assert (again.log_index, again.is_new) == (first.log_index, False)
    assert verify(tmp_path / "out", policy())[0] == 0


async def test_a_manifest_under_another_key_than_its_places_is_seen_and_made_anew(
    exporter: Exporter, tmp_path: Path
) -> None:
    archive = exporter.archive
    made = await exporter.export(tmp_path / "open", Format.CSV, allow_open=True)
    other = replace(made.manifest, filters=()).sign([SECOND])
    await LogWriter(archive.database).append(EntryKind.EXPORT_MANIFEST, other)
    await archive.sequencer().run_once()
    check = LogCheck(archive.database, origin=ORIGIN, record_domain=DOMAIN)
    difference = (await check.run()).difference
    assert difference is not None
    assert "manifest" in difference
    await exporter.export(tmp_path / "out", Format.CSV)
    assert verify(tmp_path / "out", policy())[0] == 0


async def test_a_log_begins_with_its_keys_even_when_an_export_is_the_first_thing_in_it(
    archive: Archive, fresh_database_url: str, tmp_path: Path
) -> None:
    with Books(fresh_database_url, role="none") as owner:
        exporter = Exporter(fresh_database_url, archive, owner)
        made = await exporter.export(tmp_path / "out", Format.CSV)
    assert made.log_index == 1
    assert verify(tmp_path / "out", policy())[0] == 0
    await archive.seal(wallet(1))
    check = LogCheck(archive.database, origin=ORIGIN, record_domain=DOMAIN)
    assert (await check.run()).is_clean
