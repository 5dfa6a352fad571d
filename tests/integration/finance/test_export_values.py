"""What an export says is what happened, in every format, also after corrections and rotations."""

import csv
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import openpyxl
import pyarrow.parquet as pq
import pytest

from app.db.engine import OPERATOR_ROLE, open_database
from app.finance.corrections import Correction, Corrections
from app.finance.export.as_xlsx import exact_number
from app.finance.export.writer import Format
from app.finance.interval import parse_interval
from app.receipts.rotation import Rotation, rotate
from app.receipts.sequencer import LogTerms
from ledger.export_row import RECORD_COLUMNS, Kind
from ledger.money import Nano
from ledger.note import NoteSigner
from tests.integration.books import ASSET, wallet
from tests.integration.finance.exporting import DECEMBER, Exporter, at, policy, verify
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, seed

Read = Callable[[Path, str], list[dict[str, object]]]
AMOUNTS = [column.name for column in RECORD_COLUMNS if column.kind is Kind.AMOUNT]


def read_jsonl(folder: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def read_csv(folder: Path, name: str) -> list[dict[str, object]]:
    with (folder / f"{name}.csv").open(newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def read_parquet(folder: Path, name: str) -> list[dict[str, object]]:
    table = pq.read_table(folder / f"{name}.parquet")
    found: list[dict[str, object]] = table.to_pylist()
    return found


def read_xlsx(folder: Path, name: str) -> list[dict[str, object]]:
    book = openpyxl.load_workbook(folder / "offpeak.xlsx", read_only=True)
    heading, *rows = book[name].iter_rows(values_only=True)
    book.close()
    return [dict(zip(map(str, heading), row, strict=True)) for row in rows]


READERS: dict[Format, Read] = {
    Format.JSONL: read_jsonl,
    Format.CSV: read_csv,
    Format.PARQUET: read_parquet,
    Format.XLSX: read_xlsx,
}


def exact(value: object) -> Decimal:
    return Decimal(str(value)).quantize(Decimal("1E-9"))


async def test_every_format_is_read_back_as_the_same_rows_and_sums(
    exporter: Exporter, tmp_path: Path
) -> None:
    found = {}
    for kind, read in READERS.items():
        made = await exporter.export(tmp_path / kind, kind)
        records, transfers = (read(tmp_path / kind, name) for name in ("records", "transfers"))
        assert len(records) == made.manifest.records == 10
        assert len(transfers) == made.manifest.transfers
        [sums] = made.manifest.sums
        for name, nano in (
            ("charge", sums.charge),
            ("held", sums.held),
            ("released", sums.released),
            ("amount", sums.charge),
        ):
            assert sum(exact(row[name]) for row in records) == Decimal(nano).scaleb(-9)
        found[kind] = (
            [
                (
                    row["record_id"],
                    row["payer"],
                    int(str(row["place"])),
                    *map(exact, map(row.get, AMOUNTS)),
                )
                for row in records
            ],
            [(row["ref"], int(str(row["leg"])), exact(row["amount"])) for row in transfers],
        )
    assert len({repr(each) for each in found.values()}) == 1


async def test_a_chosen_name_is_text_in_every_cell_and_never_a_formula(
    exporter: Exporter, tmp_path: Path
) -> None:
    exporter.owner.connection.execute("UPDATE offpeak.job SET region = '=1+1', release = '@now'")
    for kind in (Format.CSV, Format.XLSX, Format.JSONL, Format.FOCUS):
        await exporter.export(tmp_path / kind, kind)
        assert verify(tmp_path / kind, policy())[0] == 0
    assert {row["region"] for row in read_csv(tmp_path / "csv", "records")} == {"'=1+1"}
    assert {row["region"] for row in read_jsonl(tmp_path / "jsonl", "records")} == {"=1+1"}
    book = openpyxl.load_workbook(tmp_path / "xlsx" / "offpeak.xlsx")
    [region] = [c for c in book["records"][2] if c.value == "=1+1"]
    assert region.data_type == "s"
    assert ",'=1+1," in (tmp_path / "focus" / "focus.csv").read_text()


@pytest.mark.parametrize(
    ("nano", "is_number"),
    [(0, True), (-5, True), (999_999_999_999_999, True), (1_000_000_000_000_000, False)],
)
def test_a_sheet_holds_numbers_only_where_a_double_is_exact(nano: int, *, is_number: bool) -> None:
    number = exact_number(Kind.AMOUNT, nano)
    assert (number is not None) == is_number
    if number is not None:
        assert Decimal(repr(float(number))) == Decimal(nano).scaleb(-9)


async def corrected(exporter: Exporter) -> None:
    """Give back 5 nano of a record of November, in December."""
    row = exporter.owner.one(
        "SELECT record_id FROM offpeak.usage_record WHERE leaf_index = 4 AND charge = 7"
    )
    database = open_database(exporter.url, pool_size=2, role=OPERATOR_ROLE)
    said = Correction(record_id=uuid4(), corrects=row.record_id, charge=Nano(2), because="cut off")
    assert await Corrections(database).correct(said) == 5
    await database.dispose()
    exporter.move(at("2025-12-05 00:00:00"))
    await exporter.archive.sign()
    await exporter.archive.sequencer().run_once()


async def test_a_correction_is_a_reversal_in_its_own_month_and_leaves_the_other_alone(
    exporter: Exporter, tmp_path: Path
) -> None:
    before = await exporter.export(tmp_path / "november", Format.CSV)
    await corrected(exporter)
    again = await exporter.export(tmp_path / "november", Format.CSV)
    assert (again.is_new, again.manifest) == (False, before.manifest)

    for kind in (Format.CSV, Format.FOCUS, Format.HLEDGER):
        made = await exporter.export(tmp_path / kind, kind, DECEMBER)
        assert made.paid == {ASSET: 3 * 7 - 5}  # not the 23 that the members `charge` add up to
        assert verify(tmp_path / kind, policy())[0] == 0
    [row] = [r for r in read_csv(tmp_path / "csv", "records") if r["outcome"] == "correction"]
    assert (row["amount"], row["charge"], row["held"]) == (
        "-0.000000005", "0.000000002", "0.000000007",
    )  # fmt: skip
    with (tmp_path / "focus" / "focus.csv").open(newline="") as file:
        [charge] = [r for r in csv.DictReader(file) if r["x_Outcome"] == "correction"]
    assert (charge["ChargeClass"], charge["BilledCost"]) == ("Correction", "-0.000000005")
    assert charge["x_CorrectsRecord"] == row["corrects_record"]


async def test_a_late_record_is_booked_after_the_closed_month_which_stays_the_same_bytes(
    exporter: Exporter, tmp_path: Path
) -> None:
    for month in ("2025-10", "2025-11"):
        for act in ("soft_close_period", "close_period"):
            with exporter.archive.books.as_operator():
                exporter.archive.books.rows(f"SELECT * FROM offpeak.{act}('{month}')")
    first = await exporter.export(tmp_path / "november", Format.JSONL)
    exporter.archive.end_jobs(wallet(1), 1)
    exporter.move(at("2025-11-20 00:00:00"))
    await exporter.archive.sign()
    await exporter.archive.sequencer().run_once()

    again = await exporter.export(tmp_path / "again", Format.JSONL)
    assert (again.is_new, again.manifest) == (False, first.manifest)
    await exporter.export(tmp_path / "december", Format.JSONL, DECEMBER)
    [late] = [
        row
        for row in read_jsonl(tmp_path / "december", "records")
        if row["completed_at"] == "2025-11-20T00:00:00Z"
    ]
    assert late["booked_at"] == "2025-12-01T00:00:00Z"
    assert verify(tmp_path / "december", policy())[0] == 0


async def test_an_export_stays_the_same_and_verifies_after_the_checkpoint_key_has_changed(
    exporter: Exporter, tmp_path: Path
) -> None:
    first = await exporter.export(tmp_path / "one")
    archive = exporter.archive
    second = NoteSigner(ORIGIN, seed("second"))
    await rotate(archive.database, archive.sequencer(), Rotation(checkpoint_key=second))
    archive.terms = LogTerms(second, archive.terms.record_key, DOMAIN)
    await archive.sequencer().run_once()

    again = await exporter.export(tmp_path / "two")
    assert (again.is_new, again.log_index) == (False, first.log_index)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()

    interval = parse_interval("2025-11-01", "2025-11-02")
    later = await exporter.export(tmp_path / "later", interval=interval)
    assert later.is_new
    for name in ("one", "later"):
        code, said = verify(tmp_path / name, policy())
        assert code == 0, said
