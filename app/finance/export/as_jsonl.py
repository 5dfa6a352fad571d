"""JSON Lines: one RFC 8785 object a row."""

from collections.abc import Iterable
from typing import BinaryIO

from app.finance.export.rows import RecordRow, TransferRow
from app.finance.export.writer import Scope, Writer
from ledger.encoding import canonical_json
from ledger.export_row import RECORD_COLUMNS, TRANSFER_COLUMNS, row_object


class JsonlWriter(Writer):
    """Writes `records.jsonl` and `transfers.jsonl`."""

    def __init__(self, scope: Scope) -> None:
        self._chain_id = scope.chain_id
        self._records = (scope.folder / "records.jsonl").open("wb")
        self._transfers = (scope.folder / "transfers.jsonl").open("wb")

    def records(self, rows: Iterable[RecordRow]) -> None:
        """Write them."""
        for row in rows:
            _line(self._records, row_object(RECORD_COLUMNS, row.cells(self._chain_id)))

    def transfers(self, rows: Iterable[TransferRow]) -> None:
        """Write them."""
        for row in rows:
            _line(self._transfers, row_object(TRANSFER_COLUMNS, row.cells(self._chain_id)))

    def close(self) -> None:
        """Close both files."""
        self._records.close()
        self._transfers.close()


def _line(file: BinaryIO, row: dict[str, str | int | None]) -> None:
    file.write(canonical_json(row) + b"\n")
