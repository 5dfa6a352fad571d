"""The data rows of a jsonl or csv export against the signed records, row by row."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from ledger.errors import BadAmount, BadEntry
from ledger.export_evidence import LEFT_OUT, MAX_LINE_BYTES
from ledger.export_row import (
    RECORD_COLUMNS,
    SIGNED,
    TRANSFER_COLUMNS,
    Column,
    csv_row,
    parse_time,
    row_object,
    signed_cells,
)
from ledger.manifest import ExportManifest
from ledger.money import parse_amount
from ledger.strict_json import parse_canonical
from ledger.usage import UsageRecord
from ledger.verify.errors import Refused
from ledger.verify.files import in_folder, lines_of

Row = dict[str, str | int | None]


def has_rows(manifest: ExportManifest) -> bool:
    """Whether rows of this format are read here; of the others only the digests are checked."""
    return manifest.format in {"jsonl", "csv"}


class RecordRows:
    """The rows of `records.*`, taken one by one as their records come by."""

    def __init__(self, rows: Iterator[Row] | None, manifest: ExportManifest, chain_id: int) -> None:
        """Take the rows; None for a format that is not read."""
        self._rows = rows
        self._manifest = manifest
        self._chain_id = chain_id

    @classmethod
    def open(cls, folder: str, manifest: ExportManifest, chain_id: int) -> Self:
        """Return the rows of an export's folder."""
        rows = None
        if has_rows(manifest):
            rows = _rows(folder, f"records.{manifest.format}", RECORD_COLUMNS)
        return cls(rows, manifest, chain_id)

    def require(self, record: UsageRecord, place: int) -> None:
        """Check that the next row says what a record says.

        Raises:
            Refused, BadEntry: it does not, or there is none.
        """
        if self._rows is None:
            return
        row = next(self._rows, None)
        if row is None:
            raise Refused(f"the row of the record at place {place} is missing")
        cells = signed_cells(record, place=place, chain_id=self._chain_id)
        expected = (
            row_object(SIGNED, cells)
            if self._manifest.format == "jsonl"
            else dict(zip([c.name for c in SIGNED], csv_row(SIGNED, cells), strict=True))
        )
        for name, value in expected.items():
            if row[name] != value or type(row[name]) is not type(value):
                raise Refused(f"the row at place {place} has another {name} than its record")
        booked_at = parse_time(row["booked_at"], "booked_at")
        if not self._manifest.from_at <= booked_at < self._manifest.to_at:
            raise Refused(f"the row at place {place} is booked outside of the interval")
        if booked_at < record.completed_at:
            raise Refused(f"the row at place {place} is booked before it happened")

    def require_end(self) -> None:
        """Check that there is no row more.

        Raises:
            Refused: there is.
        """
        if self._rows is not None and next(self._rows, None) is not None:
            raise Refused("a row that no signed record stands for")


def check_transfers(folder: str, manifest: ExportManifest, net: Mapping[str, int]) -> str:
    """Check the transfers' form, number and interval, and that charges are those of the records.

    Args:
        folder: The export.
        manifest: What it should hold.
        net: What its records add to their payers' bills, by token as a cell names it, in nano.

    Raises:
        Refused, BadEntry: one does not hold.
    """
    count, charged = 0, dict[str, int]()
    last = ""
    for row in _rows(folder, f"transfers.{manifest.format}", TRANSFER_COLUMNS):
        booked_at = parse_time(row["booked_at"], "booked_at")
        if not manifest.from_at <= booked_at < manifest.to_at:
            raise Refused(f"a transfer booked at {row['booked_at']}, outside of the interval")
        if str(row["booked_at"]) < last:
            raise Refused("transfers out of their order")
        last = str(row["booked_at"])
        amount = _amount(row["amount"])
        sides = (row["debit_kind"], row["credit_kind"])
        if sides in {("wallet", "fee"), ("fee", "wallet")}:
            asset = str(row["asset"])
            signed = amount if sides[0] == "wallet" else -amount
            charged[asset] = charged.get(asset, 0) + signed
        count += 1
    if count != manifest.transfers:
        raise Refused(f"{count} transfers, but {manifest.transfers} in the manifest")
    if LEFT_OUT in dict(manifest.filters):
        return f"{count} transfers; records are left out, so charges were not compared"
    if _moved(charged) != _moved(net):
        raise Refused("wallets were charged another amount than their records say")
    return f"{count} transfers; wallets were charged what their records say"


def _moved(amounts: Mapping[str, int]) -> dict[str, int]:
    return {asset: amount for asset, amount in amounts.items() if amount}


def _rows(folder: str, name: str, columns: Sequence[Column]) -> Iterator[Row]:
    lines = lines_of(in_folder(folder, name), MAX_LINE_BYTES)
    names = [column.name for column in columns]
    if name.endswith(".jsonl"):
        for line in lines:
            row = parse_canonical(line, what=name)
            if set(row) != set(names):
                raise BadEntry(name, "another set of members")
            yield {key: _cell(name, value) for key, value in row.items()}
        return
    texts = _csv(name, lines)
    if next(texts, None) != names:
        raise BadEntry(name, "another heading")
    for cells in texts:
        if len(cells) != len(names):
            raise BadEntry(name, "a row of another length")
        yield dict(zip(names, cells, strict=True))


def _csv(name: str, lines: Iterator[bytes]) -> Iterator[list[str]]:
    def texts() -> Iterator[str]:
        for line in lines:
            try:
                yield line.decode() + "\n"
            except UnicodeDecodeError:
                raise BadEntry(name, "not UTF-8") from None

    try:
        yield from csv.reader(texts(), strict=True)
    except csv.Error:
        raise BadEntry(name, "not CSV") from None


def _cell(name: str, value: object) -> str | int | None:
    if value is None or isinstance(value, str | int):
        return value
    raise BadEntry(name, "a cell that is neither text nor number")


def _amount(text: object) -> int:
    try:
        return parse_amount(str(text))
    except BadAmount as error:
        raise BadEntry("amount", error.reason) from None
