"""Why an export is not made.

* ExportError
  - IntervalOpen, RecordsPending, TooManyRows
  - ExportExists, ExportBusy, ExportContradicts, LibraryMissing
"""

from pathlib import Path
from typing import ClassVar

from app.kit.clock import format_time, from_unix_seconds


class ExportError(Exception):
    """Base of every expected failure of an export; `next_step` says what to do about it."""

    code: ClassVar[str]
    next_step: str = ""


class IntervalOpen(ExportError):
    """The interval is not wholly past, so a rerun would say something else."""

    code = "interval-open"
    next_step = "end it in the past, or pass --allow-open to export what is sealed by now"

    def __init__(self, past_at: int) -> None:
        at = format_time(from_unix_seconds(past_at))
        super().__init__(f"the interval counts as past from {at} on, a minute after its end")
        self.past_at = past_at


class RecordsPending(ExportError):
    """Records of the interval are not in the log yet."""

    code = "records-pending"
    next_step = "let `offpeak work` seal them, or pass --allow-open to leave them out"

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} records of the interval are not in the receipt log yet")
        self.count = count


class TooManyRows(ExportError):
    """More rows than a sheet can have."""

    code = "too-many-rows"
    next_step = "export a shorter interval, or use --format csv or parquet"

    def __init__(self, rows: int, limit: int) -> None:
        super().__init__(f"{rows} rows; a sheet holds {limit} below its heading")
        self.rows = rows
        self.limit = limit


class ExportExists(ExportError):
    """The folder is there and is not this export."""

    code = "export-exists"
    next_step = "name another folder with -o; nothing there was changed"

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} exists and is not the same export")
        self.folder = folder


class ExportBusy(ExportError):
    """Another process writes the same export now."""

    code = "export-busy"
    next_step = "wait for it, or name another folder with -o"

    def __init__(self, folder: Path) -> None:
        super().__init__(f"another process writes {folder}")
        self.folder = folder


class ExportContradicts(ExportError):
    """Stored rows contradict what was signed and logged; nothing is exported."""

    code = "export-contradicts"
    next_step = "run `offpeak log check` and `offpeak ledger check`"


class LibraryMissing(ExportError):
    """A format needs a library that is not installed."""

    code = "library-missing"
    next_step = "pip install 'offpeak-inference[finance]'"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed")
