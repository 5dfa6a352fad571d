"""A row's values are written exactly, and only chosen text is kept from being a formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadEntry
from ledger.export_row import (
    FORMULA_SIGNS,
    Kind,
    cell_text,
    csv_text,
    json_value,
    parse_time,
    time_text,
)


@pytest.mark.parametrize("sign", FORMULA_SIGNS)
def test_chosen_text_that_a_spreadsheet_would_run_is_quoted(sign: str) -> None:
    assert csv_text(Kind.TEXT, sign + "1+1") == "'" + sign + "1+1"
    assert csv_text(Kind.ID, sign + "1") == sign + "1"


@given(st.integers(-(2**63), 2**63))
def test_negative_amounts_and_numbers_stay_numbers(value: int) -> None:
    text = csv_text(Kind.AMOUNT, value)
    assert text == cell_text(Kind.AMOUNT, value)
    assert int(text.replace(".", "")) == value
    assert len(text.partition(".")[2]) == 9
    assert csv_text(Kind.INTEGER, value) == str(value)


@given(st.integers(0, 253_402_300_799))
def test_times_are_read_back_as_written(seconds: int) -> None:
    assert parse_time(time_text(seconds), "time") == seconds


@pytest.mark.parametrize(
    "text",
    [
        None,
        5,
        "",
        "2026-11-01",
        "2026-11-01T00:00:00",
        "2026-1-1T00:00:00Z",
        "2026-02-30T00:00:00Z",
    ],
)
def test_other_times_are_refused(text: object) -> None:
    with pytest.raises(BadEntry):
        parse_time(text, "time")


def test_a_time_beyond_all_calendars_is_refused() -> None:
    with pytest.raises(BadEntry):
        time_text(2**63)


def test_json_has_numbers_for_counts_and_text_for_money() -> None:
    assert json_value(Kind.INTEGER, 5) == 5
    assert json_value(Kind.AMOUNT, 5) == "0.000000005"
    assert json_value(Kind.TEXT, None) is None
