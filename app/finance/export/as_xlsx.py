"""One workbook of two sheets, written row by row.

A spreadsheet keeps numbers as doubles, which are exact to 15 digits. An amount or integer with
more digits is written as text, exactly; so is every id. Zip times and properties are fixed.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.worksheet._write_only import WriteOnlyWorksheet

from app.finance.export.errors import TooManyRows
from app.finance.export.rows import RecordRow, TransferRow
from app.finance.export.writer import MAX_SHEET_ROWS, Scope, Writer
from ledger.export_row import RECORD_COLUMNS, TRANSFER_COLUMNS, Cell, Column, Kind, cell_text
from ledger.money import DECIMALS

EXACT_DIGITS: Final = 15
AMOUNT_FORMAT: Final = "0.000000000"
_PIECE: Final = 1 << 20
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
_MODIFIED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*(</dcterms:modified>)")


class XlsxWriter(Writer):
    """Writes `offpeak.xlsx`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._book = Workbook(write_only=True)
        self._book.properties.creator = "OFFPEAK"
        self._book.properties.created = _naive(scope)
        self._records = self._sheet("records", RECORD_COLUMNS)
        self._transfers = self._sheet("transfers", TRANSFER_COLUMNS)
        self._counts = {"records": 0, "transfers": 0}

    def records(self, rows: Iterable[RecordRow]) -> None:
        """Write them."""
        cells = (row.cells(self._scope.chain_id) for row in rows)
        self._write(self._records, RECORD_COLUMNS, cells)

    def transfers(self, rows: Iterable[TransferRow]) -> None:
        """Write them."""
        cells = (row.cells(self._scope.chain_id) for row in rows)
        self._write(self._transfers, TRANSFER_COLUMNS, cells)

    def close(self) -> None:
        """Write the workbook, then once more without the times that its library put in."""
        dated = self._scope.folder / "offpeak.xlsx.dated"
        self._book.save(dated)
        modified = _naive(self._scope).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        _without_times(dated, self._scope.folder / "offpeak.xlsx", modified)
        dated.unlink()

    def _sheet(self, title: str, columns: Sequence[Column]) -> WriteOnlyWorksheet:
        sheet = self._book.create_sheet(title)
        assert isinstance(sheet, WriteOnlyWorksheet)
        sheet.freeze_panes = "A2"
        sheet.append([column.name for column in columns])
        return sheet

    def _write(
        self,
        sheet: WriteOnlyWorksheet,
        columns: Sequence[Column],
        rows: Iterator[tuple[Cell, ...]],
    ) -> None:
        for row in rows:
            self._counts[sheet.title] += 1
            if self._counts[sheet.title] > MAX_SHEET_ROWS:
                raise TooManyRows(self._counts[sheet.title], MAX_SHEET_ROWS)
            sheet.append(
                [_cell(sheet, c.kind, value) for c, value in zip(columns, row, strict=True)]
            )


def exact_number(kind: Kind, value: Cell) -> Decimal | int | None:
    """Return the number that a double holds exactly to its last digit, None where none does."""
    if not isinstance(value, int) or len(str(abs(value))) > EXACT_DIGITS:
        return None
    if kind is Kind.AMOUNT:
        return Decimal(value).scaleb(-DECIMALS)
    return value if kind is Kind.INTEGER else None


def _cell(sheet: WriteOnlyWorksheet, kind: Kind, value: Cell) -> object:
    if value is None:
        return None
    number = exact_number(kind, value)
    shown = cell_text(kind, value) if number is None else number
    cell = WriteOnlyCell(sheet, shown)  # type: ignore[arg-type]  # the stubs know no Decimal
    if number is None:
        cell.data_type = "s"  # never a formula, whatever it begins with
    elif kind is Kind.AMOUNT:
        cell.number_format = AMOUNT_FORMAT
    return cell


def _naive(scope: Scope) -> datetime:
    """Return the interval's end as the library wants times."""
    return datetime.fromtimestamp(scope.to_at, UTC).replace(tzinfo=None)


def _without_times(source: Path, target: Path, modified: bytes) -> None:
    with zipfile.ZipFile(source) as dated, zipfile.ZipFile(target, "w") as fixed:
        for entry in dated.infolist():
            info = zipfile.ZipInfo(entry.filename, date_time=_ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            with dated.open(entry) as given, fixed.open(info, "w", force_zip64=True) as taken:
                while piece := given.read(_PIECE):
                    if entry.filename == "docProps/core.xml":
                        piece = _MODIFIED.sub(rb"\g<1>" + modified + rb"\g<2>", piece)
                    taken.write(piece)
