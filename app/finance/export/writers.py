"""Which writer makes which format. Libraries are loaded for the formats that need them only."""

from typing import Final

from app.finance.export.as_beancount import BeancountWriter
from app.finance.export.as_csv import CsvWriter
from app.finance.export.as_focus import FocusWriter
from app.finance.export.as_hledger import HledgerWriter
from app.finance.export.as_jsonl import JsonlWriter
from app.finance.export.errors import LibraryMissing
from app.finance.export.writer import Format, Scope, Writer

_PLAIN: Final[
    dict[Format, type[JsonlWriter | CsvWriter | FocusWriter | BeancountWriter | HledgerWriter]]
] = {
    Format.JSONL: JsonlWriter,
    Format.CSV: CsvWriter,
    Format.FOCUS: FocusWriter,
    Format.BEANCOUNT: BeancountWriter,
    Format.HLEDGER: HledgerWriter,
}


def open_writer(kind: Format, scope: Scope) -> Writer:
    """Return the writer of a format; its files are open from now on.

    Raises:
        LibraryMissing: the extra `[finance]` is not installed.
    """
    if kind in _PLAIN:
        return _PLAIN[kind](scope)
    try:
        if kind is Format.PARQUET:
            from app.finance.export.as_parquet import ParquetWriter  # noqa: PLC0415  # 60 MB

            return ParquetWriter(scope)
        from app.finance.export.as_xlsx import XlsxWriter  # noqa: PLC0415

        return XlsxWriter(scope)
    except ModuleNotFoundError as error:
        raise LibraryMissing(str(error.name)) from None
