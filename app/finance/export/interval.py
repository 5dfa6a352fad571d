"""The half-open interval of UTC time that an export covers."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from app.finance.export.errors import BadInterval

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH = re.compile(r"([1-9][0-9]{3})-(0[1-9]|1[0-2])")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclass(frozen=True, slots=True)
class Interval:
    """From `start` up to but not including `end`, in unix seconds."""

    start: int
    end: int

    @classmethod
    def parse(cls, start: str, end: str) -> "Interval":
        """Return the interval between two dates or RFC 3339 times in UTC.

        Raises:
            BadInterval: another form, or not a second long.
        """
        interval = cls(_seconds(start), _seconds(end))
        if interval.start >= interval.end:
            raise BadInterval(f"{start} is not before {end}")
        return interval

    @classmethod
    def month(cls, text: str) -> "Interval":
        """Return the calendar month that `2026-11` names.

        Raises:
            BadInterval: another form.
        """
        match = _MONTH.fullmatch(text)
        if match is None:
            raise BadInterval(f"{text[:40]!r} is no month like 2026-11")
        year, month = int(match[1]), int(match[2])
        following = f"{year + month // 12:04d}-{month % 12 + 1:02d}-01"
        return cls.parse(f"{text}-01", following)

    @property
    def starts_at(self) -> datetime:
        """Return its first moment."""
        return datetime.fromtimestamp(self.start, UTC)

    @property
    def ends_at(self) -> datetime:
        """Return the first moment after it."""
        return datetime.fromtimestamp(self.end, UTC)


def _seconds(text: str) -> int:
    try:
        if _DATE.fullmatch(text):
            return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
        if _TIME.fullmatch(text):
            found = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            return int(found.timestamp())
    except ValueError:
        pass
    raise BadInterval(f"{text[:40]!r} is neither a date nor a UTC time like 2026-11-01T00:00:00Z")
