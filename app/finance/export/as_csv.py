"""CSV (RFC 4180, but lines end in LF): a heading, then a row each. Nothing is the empty cell."""

import csv
from collections.abc import Iterable
from pathlib import Path

from app.finance.export.rows import RecordRow, TransferRow
from app.finance.export.writer import Scope, Writer
from ledger.export_row import RECORD_COLUMNS, TRANSFER_COLUMNS, csv_row


class CsvFile:
    """One CSV file being written."""

    def __init__(self, path: Path, heading: Iterable[str]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._rows.writerow(heading)

    def write(self, rows: Iterable[Iterable[str]]) -> None:
        """Append rows."""
        self._rows.writerows(rows)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class CsvWriter(Writer):
    """Writes `records.csv` and `transfers.csv`."""

    def __init__(self, scope: Scope) -> None:
        self._chain_id = scope.chain_id
        self._records = CsvFile(scope.folder / "records.csv", [c.name for c in RECORD_COLUMNS])
        self._transfers = CsvFile(
            scope.folder / "transfers.csv", [c.name for c in TRANSFER_COLUMNS]
        )

    def records(self, rows: Iterable[RecordRow]) -> None:
        """Write them."""
        self._records.write(csv_row(RECORD_COLUMNS, row.cells(self._chain_id)) for row in rows)

    def transfers(self, rows: Iterable[TransferRow]) -> None:
        """Write them."""
        self._transfers.write(csv_row(TRANSFER_COLUMNS, row.cells(self._chain_id)) for row in rows)

    def close(self) -> None:
        """Close both files."""
        self._records.close()
        self._transfers.close()
