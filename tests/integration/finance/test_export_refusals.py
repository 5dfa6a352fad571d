"""What is not exported, what a killed export leaves behind, and what late events change."""

import asyncio
import fcntl
from pathlib import Path

import pytest

from app.finance.export import service
from app.finance.export.errors import (
    ExportBusy,
    ExportContradicts,
    ExportExists,
    IntervalOpen,
    RecordsPending,
    TooManyRows,
)
from app.finance.export.folder import unfinished
from app.finance.export.writer import Format
from app.finance.interval import month_interval, parse_interval
from tests.integration.books import wallet
from tests.integration.finance.exporting import (
    DECEMBER,
    NOVEMBER,
    Exporter,
    at,
    policy,
    verify,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def size(exporter: Exporter) -> int:
    return (await exporter.archive.reader.checkpoint()).size


async def test_an_interval_that_is_not_over_is_refused_unless_that_is_wanted(
    exporter: Exporter, tmp_path: Path
) -> None:
    future = parse_interval("2025-11-01", "2099-01-01")
    with pytest.raises(IntervalOpen):
        await exporter.export(tmp_path / "open", interval=future)
    assert names(tmp_path) == []
    made = await exporter.export(tmp_path / "open", interval=future, allow_open=True)
    assert made.manifest.filters == (("open", "the interval was not over"),)
    code, steps = verify(tmp_path / "open", policy())
    assert code == 0
    assert steps["transfers"].endswith("wallets were charged what their records say")


async def test_records_that_are_not_in_the_log_are_counted_and_refused(
    exporter: Exporter, tmp_path: Path
) -> None:
    exporter.archive.end_jobs(wallet(1), 2)
    exporter.move(at("2025-11-15 00:00:00"))
    await exporter.archive.sign()
    before = await size(exporter)
    with pytest.raises(RecordsPending) as refused:
        await exporter.export(tmp_path / "november")
    assert refused.value.count == 2
    assert await size(exporter) == before

    made = await exporter.export(tmp_path / "november", allow_open=True)
    assert (made.manifest.records, dict(made.manifest.filters)["left_out"][0]) == (10, "2")
    assert verify(tmp_path / "november", policy())[0] == 0

    await exporter.archive.sequencer().seal_once()
    with pytest.raises(RecordsPending):  # sealed, but its header is not in the log
        await exporter.export(tmp_path / "sealed")


async def test_a_folder_that_is_another_export_is_refused_before_anything_is_logged(
    exporter: Exporter, tmp_path: Path
) -> None:
    await exporter.export(tmp_path / "out", Format.CSV)
    before = await size(exporter)
    for kind, interval in ((Format.JSONL, NOVEMBER), (Format.CSV, DECEMBER)):
        with pytest.raises(ExportExists):
            await exporter.export(tmp_path / "out", kind, interval)
    (tmp_path / "other").mkdir()
    with pytest.raises(ExportExists):
        await exporter.export(tmp_path / "other", Format.CSV)
    assert await size(exporter) == before
    again = await exporter.export(tmp_path / "out", Format.CSV)
    assert not again.is_new
    assert names(tmp_path) == ["other", "out"]


async def test_a_folder_whose_files_were_changed_is_not_the_same_export(
    exporter: Exporter, tmp_path: Path
) -> None:
    await exporter.export(tmp_path / "out", Format.CSV)
    with (tmp_path / "out" / "records.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(ExportExists):
        await exporter.export(tmp_path / "out", Format.CSV)


async def test_an_export_that_stops_on_its_way_leaves_nothing(
    exporter: Exporter, tmp_path: Path
) -> None:
    def stop(_count: int) -> None:
        raise asyncio.CancelledError

    order = service.Order(interval=NOVEMBER, format=Format.CSV, target=tmp_path / "out")
    with pytest.raises(asyncio.CancelledError):
        await exporter.service().export(order, stop)
    assert names(tmp_path) == []


async def test_what_a_killed_export_left_is_replaced(exporter: Exporter, tmp_path: Path) -> None:
    left = tmp_path / ".out.partial"
    left.mkdir()
    (left / "records.csv").write_text("half")
    (left / "records.jsonl").write_text("half")
    made = await exporter.export(tmp_path / "out", Format.CSV)
    assert made.is_new
    assert names(tmp_path) == ["out"]
    assert verify(tmp_path / "out", policy())[0] == 0


async def test_a_manifest_that_was_logged_before_a_crash_gets_its_checkpoint_and_no_twin(
    exporter: Exporter, tmp_path: Path
) -> None:
    first = await exporter.export(tmp_path / "first")
    note = (tmp_path / "first" / "manifest.note").read_bytes()
    exporter.owner.connection.execute(
        "DELETE FROM offpeak.log_checkpoint WHERE size > %s", (first.log_index,)
    )
    again = await exporter.export(tmp_path / "again")
    assert (again.is_new, again.log_index) == (False, first.log_index)
    assert await size(exporter) == first.log_index + 1
    assert (tmp_path / "again" / "manifest.note").read_bytes() == note
    assert verify(tmp_path / "again", policy())[0] == 0


async def test_two_exports_into_one_folder_at_a_time_are_refused(
    exporter: Exporter, tmp_path: Path
) -> None:
    with unfinished(tmp_path / "out"), pytest.raises(ExportBusy):
        await exporter.export(tmp_path / "out")


async def test_more_rows_than_a_sheet_holds_are_refused_before_writing(
    exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SHEET_ROWS", 9)
    with pytest.raises(TooManyRows):
        await exporter.export(tmp_path / "out", Format.XLSX)
    assert (await exporter.export(tmp_path / "out", Format.CSV)).manifest.records == 10


@pytest.mark.parametrize(
    "corruption",
    [
        "UPDATE offpeak.usage_record SET charge = 6, released = 4 WHERE leaf_index = 4",
        "UPDATE offpeak.usage_record SET output_tokens = 6 WHERE leaf_index = 4",
        "UPDATE offpeak.usage_record SET leaf_hash = sha256('x') WHERE leaf_index = 4",
        "UPDATE offpeak.usage_record SET leaf_index = 400 WHERE leaf_index = 4",
    ],
)
async def test_rows_that_contradict_what_was_sealed_are_not_exported(
    exporter: Exporter, tmp_path: Path, corruption: str
) -> None:
    exporter.owner.connection.execute(corruption.encode())
    with pytest.raises((ExportContradicts, RecordsPending)):
        await exporter.export(tmp_path / "out")
    assert names(tmp_path) == []


async def test_an_empty_interval_is_an_export_too(exporter: Exporter, tmp_path: Path) -> None:
    made = await exporter.export(tmp_path / "out", interval=month_interval("2025-09"))
    assert (made.manifest.records, made.manifest.log_size) == (0, 0)
    assert (made.manifest.first_batch, made.manifest.last_batch) == (None, None)
    assert verify(tmp_path / "out", policy())[0] == 0


async def test_days_add_up_to_their_month(exporter: Exporter, tmp_path: Path) -> None:
    whole = (await exporter.export(tmp_path / "month")).manifest
    parts = []
    for start, end in (
        ("2025-11-01", "2025-11-02"),
        ("2025-11-02", "2025-11-30"),
        ("2025-11-30", "2025-12-01"),
    ):
        interval = parse_interval(start, end)
        parts.append((await exporter.export(tmp_path / start, interval=interval)).manifest)
    assert sum(part.records for part in parts) == whole.records
    assert sum(part.transfers for part in parts) == whole.transfers
    charges = [each.charge for part in parts for each in part.sums]
    assert sum(charges) == whole.sums[0].charge


async def test_a_link_by_the_hidden_name_is_not_followed_and_what_it_names_is_kept(
    exporter: Exporter, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "thesis.txt").write_text("years of work")
    (tmp_path / ".november.partial").symlink_to(tmp_path / "private")
    before = await size(exporter)
    with pytest.raises(ExportExists):
        await exporter.export(tmp_path / "november")
    assert names(tmp_path / "private") == ["thesis.txt"]
    assert await size(exporter) == before


async def test_what_a_killed_export_left_is_made_private_and_empty(
    exporter: Exporter, tmp_path: Path
) -> None:
    left = tmp_path / ".november.partial"
    (left / "deep").mkdir(parents=True)
    (left / "deep" / "old.csv").write_text("old")
    left.chmod(0o777)
    await exporter.export(tmp_path / "november")
    assert (tmp_path / "november").stat().st_mode & 0o777 == 0o700
    assert "deep" not in names(tmp_path / "november")
    assert verify(tmp_path / "november", policy())[0] == 0


def test_a_folder_that_was_finished_while_another_waited_for_it_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, flock = tmp_path / "november", fcntl.flock

    def finished_first(handle: int, how: int) -> None:
        (tmp_path / ".november.partial").rename(target)
        (target / "records.csv").write_text("kept")
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", finished_first)
    with pytest.raises(ExportBusy), unfinished(target):
        pass
    assert names(target) == ["records.csv"]
