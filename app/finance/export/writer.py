"""The one way in which rows reach a format; the seven formats are its implementations.

A writer is called in this order: `accounts`, `records`, `transfers`, `closing`, each many times
with some rows, then `close`. Each takes what it needs and leaves the rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Final

from app.finance.export.rows import AccountRow, RecordRow, TransferRow

MAX_SHEET_ROWS: Final = 1_048_575
"""A sheet of a workbook has 2^20 rows; one is the heading."""


class Format(StrEnum):
    """In which form an export is written."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    XLSX = "xlsx"
    FOCUS = "focus"
    BEANCOUNT = "beancount"
    HLEDGER = "hledger"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a writer knows of the export: where it writes, the half-open interval, the chain."""

    folder: Path
    from_at: int
    to_at: int
    chain_id: int


class Writer(ABC):
    """Writes one export's rows into files of its folder."""

    takes_accounts: ClassVar[bool] = False
    """Whether balances are of use to it; finding them reads every transfer there ever was."""

    def accounts(self, rows: Iterable[AccountRow]) -> None:  # noqa: B027
        """Take accounts with the balances at both ends of the interval."""

    def records(self, rows: Iterable[RecordRow]) -> None:  # noqa: B027
        """Take records in the order of the sequence."""

    def transfers(self, rows: Iterable[TransferRow]) -> None:  # noqa: B027
        """Take transfers in the order of booking."""

    def closing(self, rows: Iterable[AccountRow]) -> None:  # noqa: B027
        """Take the same accounts again, after all transfers."""

    @abstractmethod
    def close(self) -> None:
        """Finish all files. Also called after a failure, when the files are of no use."""
