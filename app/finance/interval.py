"""Half-open intervals of UTC: `start` is inside, `end` is the next one's, so days add up."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from app.finance.errors import BadInterval
from app.kit.clock import format_time

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Signed times are unix seconds without a sign."""
_FORMS: Final = (
    (re.compile(r"[0-9]{4}-[0-9]{2}"), "%Y-%m"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "%Y-%m-%d"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"), "%Y-%m-%dT%H:%M:%SZ"),
)


@dataclass(frozen=True, slots=True)
class Interval:
    """All instants with start <= t < end, both whole seconds of UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse what is no interval.

        Raises:
            BadInterval: it is empty, has no zone, or does not stand on whole seconds.
        """
        for at in (self.start, self.end):
            if at.tzinfo is None or at.microsecond:
                raise BadInterval(f"{at.isoformat()} is not a whole second of UTC")
        if self.start >= self.end:
            raise BadInterval(f"{format_time(self.end)} is not after {format_time(self.start)}")

    def __str__(self) -> str:
        return f"{format_time(self.start)} up to {format_time(self.end)}"


def parse_instant(text: str) -> datetime:
    """Return the instant that a month, a day or a second names: its beginning, in UTC.

    Raises:
        BadInterval: another form, another zone, or no such day.
    """
    for form, pattern in _FORMS:
        if form.fullmatch(text):
            try:
                found = datetime.strptime(text, pattern).replace(tzinfo=UTC)
            except ValueError:
                break
            if found < EARLIEST:
                raise BadInterval(f"{text!r} is before 1970")
            return found
    raise BadInterval(f"{text!r} is no month, day or second of UTC")


def month_interval(month: str) -> Interval:
    """Return a whole month, YYYY-MM; BadInterval for anything else."""
    if not _FORMS[0][0].fullmatch(month):
        raise BadInterval(f"{month!r} is no month like 2026-01")
    start = parse_instant(month)
    try:
        following = (start + timedelta(days=31)).replace(day=1)
    except OverflowError:
        raise BadInterval(f"{month!r} ends after the last year that a time can have") from None
    return Interval(start, following)


def parse_interval(start: str, end: str) -> Interval:
    """Return the interval from one instant up to another; BadInterval as its parts."""
    return Interval(parse_instant(start), parse_instant(end))
