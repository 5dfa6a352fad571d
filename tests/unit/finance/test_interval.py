"""Intervals are half-open, in UTC, and written in one of three ways."""

import pytest

from app.finance.export.errors import BadInterval
from app.finance.export.interval import Interval


def test_dates_times_and_months_say_the_same() -> None:
    month = Interval.month("2026-12")
    assert month == Interval.parse("2026-12-01", "2027-01-01")
    assert month == Interval.parse("2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z")
    assert month.end - month.start == 31 * 86_400


def test_neighbouring_months_meet_without_overlap() -> None:
    assert Interval.month("2026-11").end == Interval.month("2026-12").start


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-01", "2026-11-01"),
        ("2026-11-02", "2026-11-01"),
        ("2026-11-31", "2026-12-01"),
        ("2026-11-01T00:00:00", "2026-12-01"),
        ("2026-11-01T00:00:00+01:00", "2026-12-01"),
        ("2026-11-01T00:00:60Z", "2026-12-01"),
        ("yesterday", "today"),
    ],
)
def test_anything_else_is_refused(start: str, end: str) -> None:
    with pytest.raises(BadInterval):
        Interval.parse(start, end)


@pytest.mark.parametrize("text", ["2026-13", "2026-0", "0000-01", "2026-11-01", "11-2026"])
def test_no_month_is_refused(text: str) -> None:
    with pytest.raises(BadInterval):
        Interval.month(text)
