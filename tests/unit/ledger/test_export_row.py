"""A row's values are written exactly, and only chosen text is kept from being a formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadEntry
from ledger.export_row import (
    FORMULA_SIGNS,
    Cell,
    Column,
    Kind,
    cell_text,
    csv_row,
    parse_time,
    row_object,
    time_text,
)


def csv(kind: Kind, value: Cell) -> str:
    [text] = csv_row([Column("x", kind)], [value])
    return text


@pytest.mark.parametrize("sign", FORMULA_SIGNS)
def test_chosen_text_that_a_spreadsheet_would_run_is_quoted(sign: str) -> None:
    assert csv(Kind.TEXT, sign + "1+1") == "'" + sign + "1+1"
    assert csv(Kind.ID, sign + "1") == sign + "1"


@given(st.integers(-(2**63), 2**63))
def test_negative_amounts_and_numbers_stay_numbers(value: int) -> None:
    text = csv(Kind.AMOUNT, value)
    assert text == cell_text(Kind.AMOUNT, value)
    assert int(text.replace(".", "")) == value
    assert len(text.partition(".")[2]) == 9
    assert csv(Kind.INTEGER, value) == str(value)


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
    columns = [Column("n", Kind.INTEGER), Column("amount", Kind.AMOUNT), Column("x", Kind.TEXT)]
    assert row_object(columns, (5, 5, None)) == {"n": 5, "amount": "0.000000005", "x": None}
