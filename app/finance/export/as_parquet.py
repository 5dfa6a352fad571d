"""Parquet: amounts as decimal128(38, 9), times as UTC timestamps, texts as they are.

Nothing in a file depends on when it was written. The library's version is in each file, so a
rerun is the same bytes as long as pyarrow is the same.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from app.finance.export.rows import RecordRow, TransferRow
from app.finance.export.writer import Scope, Writer
from ledger.export_row import RECORD_COLUMNS, TRANSFER_COLUMNS, Cell, Column, Kind
from ledger.money import DECIMALS

GROUP_ROWS = 5_000
"""Rows of a row group; as Python objects they are most of what an export needs in memory."""
_TYPES = {
    Kind.ID: pa.string(),
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.AMOUNT: pa.decimal128(38, DECIMALS),
    Kind.TIME: pa.timestamp("s", tz="UTC"),
}


class ParquetFile:
    """One Parquet file being written, a row group at a time."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._schema = pa.schema([(c.name, _TYPES[c.kind]) for c in columns])
        self._file = pq.ParquetWriter(path, self._schema, version="2.6", compression="snappy")
        self._rows: list[tuple[Cell, ...]] = []

    def write(self, rows: Iterable[tuple[Cell, ...]]) -> None:
        """Append rows; whole groups go to disk."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == GROUP_ROWS:
                self._flush()

    def close(self) -> None:
        """Write the last group and the footer."""
        if self._rows:
            self._flush()
        self._file.close()

    def _flush(self) -> None:
        values = zip(*self._rows, strict=True)
        arrays = [
            pa.array(
                [_decimal(cell) for cell in cells] if column.kind is Kind.AMOUNT else list(cells),
                type=_TYPES[column.kind],
            )
            for column, cells in zip(self._columns, values, strict=True)
        ]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()


class ParquetWriter(Writer):
    """Writes `records.parquet` and `transfers.parquet`."""

    def __init__(self, scope: Scope) -> None:
        self._chain_id = scope.chain_id
        self._records = ParquetFile(scope.folder / "records.parquet", RECORD_COLUMNS)
        self._transfers = ParquetFile(scope.folder / "transfers.parquet", TRANSFER_COLUMNS)

    def records(self, rows: Iterable[RecordRow]) -> None:
        """Write them."""
        self._records.write(row.cells(self._chain_id) for row in rows)

    def transfers(self, rows: Iterable[TransferRow]) -> None:
        """Write them."""
        self._transfers.write(row.cells(self._chain_id) for row in rows)

    def close(self) -> None:
        """Finish both files."""
        self._records.close()
        self._transfers.close()


def _decimal(nano: Cell) -> Decimal | None:
    return None if nano is None else Decimal(nano).scaleb(-DECIMALS)
