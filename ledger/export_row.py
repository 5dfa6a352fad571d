"""The rows of a finance export: columns, their kinds, and how a value is written as text.

Export and verifier both use this page, so what a row should say has one source. The first columns
of a record's row follow from the signed record and its place; those in `UNSIGNED` are the
gateway's own words beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from ledger.encoding import Address, checksum_address, uuid_from_bytes32
from ledger.errors import BadEntry
from ledger.money import Nano, format_amount
from ledger.usage import NO_RECORD, Outcome, UsageRecord

Cell = str | int | None
"""A value: text, a whole number (nano for amounts, unix seconds for times), or nothing."""

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the start of a formula."""


class Kind(Enum):
    """What a column holds."""

    ID = "id"
    """Text of our own making: hex, UUIDs, CAIP-10, a word of a fixed list."""
    TEXT = "text"
    """Text that somebody chose; the one kind that could be read as a formula."""
    INTEGER = "integer"
    AMOUNT = "amount"
    """Nano; written as a decimal number with nine places."""
    TIME = "time"
    """Unix seconds; written as RFC 3339 in UTC."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and kind."""

    name: str
    kind: Kind


SIGNED: Final = (
    Column("place", Kind.INTEGER),
    Column("record_id", Kind.ID),
    Column("corrects_record", Kind.ID),
    Column("payer", Kind.ID),
    Column("payer_seq", Kind.INTEGER),
    Column("previous_record", Kind.ID),
    Column("outcome", Kind.ID),
    Column("asset", Kind.ID),
    Column("amount", Kind.AMOUNT),
    Column("charge", Kind.AMOUNT),
    Column("held", Kind.AMOUNT),
    Column("released", Kind.AMOUNT),
    Column("input_tokens", Kind.INTEGER),
    Column("cached_input_tokens", Kind.INTEGER),
    Column("output_tokens", Kind.INTEGER),
    Column("reasoning_tokens", Kind.INTEGER),
    Column("input_rate_per_mtok", Kind.AMOUNT),
    Column("output_rate_per_mtok", Kind.AMOUNT),
    Column("per_request", Kind.AMOUNT),
    Column("model_revision", Kind.ID),
    Column("completed_at", Kind.TIME),
)
"""Columns that the signed record and its place in the sequence fix."""

UNSIGNED: Final = (
    Column("booked_at", Kind.TIME),
    Column("model", Kind.TEXT),
    Column("region", Kind.TEXT),
)
"""Columns that are the gateway's word only."""

RECORD_COLUMNS: Final = SIGNED + UNSIGNED
TRANSFER_COLUMNS: Final = (
    Column("ref", Kind.ID),
    Column("leg", Kind.INTEGER),
    Column("booked_at", Kind.TIME),
    Column("created_at", Kind.TIME),
    Column("debit_kind", Kind.ID),
    Column("debit_owner", Kind.TEXT),
    Column("credit_kind", Kind.ID),
    Column("credit_owner", Kind.TEXT),
    Column("asset", Kind.ID),
    Column("amount", Kind.AMOUNT),
)


def caip10(chain_id: int, address: Address) -> str:
    """The account of an address on an EIP-155 chain, as CAIP-10 writes it."""
    return f"eip155:{chain_id}:{checksum_address(address)}"


def net_amount(record: UsageRecord) -> Nano:
    """What the record adds to its payer's bill: its charge, or a correction's refund as minus."""
    if record.outcome is Outcome.CORRECTION:
        return Nano(-record.released_nano)
    return record.charge_nano


def signed_cells(record: UsageRecord, *, place: int, chain_id: int) -> tuple[Cell, ...]:
    """The values of `SIGNED` for a record at a place of the sequence of all sealed records."""
    return (
        place,
        _id(record.record_id),
        _id(record.corrects_record),
        caip10(chain_id, record.payer),
        record.payer_seq,
        _id(record.prev_payer_record),
        record.outcome.name.lower(),
        caip10(chain_id, record.asset),
        net_amount(record),
        record.charge_nano,
        record.held_nano,
        record.released_nano,
        record.input_tokens,
        record.cached_input_tokens,
        record.output_tokens,
        record.reasoning_tokens,
        record.input_rate_nano,
        record.output_rate_nano,
        record.per_request_nano,
        "0x" + record.model_revision.hex(),
        record.completed_at,
    )


def cell_text(kind: Kind, value: Cell) -> str:
    """A value as it is written in every text format; nothing is the empty text."""
    return "" if value is None else _FORMS[kind](value)


def harmless(text: str) -> str:
    """Chosen text with a quote before it if a spreadsheet would run it."""
    return "'" + text if text.startswith(FORMULA_SIGNS) else text


def row_object(columns: Sequence[Column], cells: Sequence[Cell]) -> dict[str, str | int | None]:
    """A row as a JSON object: integers as numbers, amounts and times as text."""
    return {
        column.name: cell if cell is None else _JSON_FORMS[column.kind](cell)
        for column, cell in zip(columns, cells, strict=True)
    }


def csv_row(columns: Sequence[Column], cells: Sequence[Cell]) -> list[str]:
    """A row as a list of texts; chosen text is `harmless`."""
    return [
        "" if cell is None else _CSV_FORMS[column.kind](cell)
        for column, cell in zip(columns, cells, strict=True)
    ]


@lru_cache(maxsize=1024)
def time_text(seconds: int) -> str:
    """A time as RFC 3339 in UTC, to the second.

    Raises:
        BadEntry: beyond the year 9999.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        raise BadEntry("time", "beyond the year 9999") from None


def parse_time(text: object, field: str) -> int:
    """The unix seconds that `time_text` writes so.

    Raises:
        BadEntry: any other form.
    """
    if isinstance(text, str):
        try:
            found = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError:
            found = None
        if found is not None and time_text(int(found.timestamp())) == text:
            return int(found.timestamp())
    raise BadEntry(field, "not a time as 2026-11-01T00:00:00Z")


_FORMS: Final[Mapping[Kind, Callable[[Any], str]]] = {
    Kind.ID: str,
    Kind.TEXT: str,
    Kind.INTEGER: str,
    Kind.AMOUNT: format_amount,
    Kind.TIME: time_text,
}
_CSV_FORMS: Final[Mapping[Kind, Callable[[Any], str]]] = {**_FORMS, Kind.TEXT: harmless}
_JSON_FORMS: Final[Mapping[Kind, Callable[[Any], str | int]]] = {**_FORMS, Kind.INTEGER: int}


def _id(word: bytes) -> str | None:
    return None if word == NO_RECORD else str(uuid_from_bytes32(word))
