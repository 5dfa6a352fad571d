"""Months that cannot be: refused as such, before a period or an export is made of them."""

import pytest

from app.finance.errors import BadInterval, BadMonth
from app.finance.interval import month_interval, parse_instant
from app.finance.periods import parse_month


@pytest.mark.parametrize("month", ["0000-01", "0001-01", "1969-12"])
def test_a_month_before_unix_time_is_none(month: str) -> None:
    with pytest.raises(BadMonth):
        parse_month(month)
    with pytest.raises(BadInterval):
        month_interval(month)


def test_the_first_and_the_last_month() -> None:
    assert parse_month("1970-01") == "1970-01"
    assert month_interval("1970-01").start == parse_instant("1970-01-01T00:00:00Z")
    with pytest.raises(BadInterval, match="last year"):
        month_interval("9999-12")
