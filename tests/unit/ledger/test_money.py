import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadAmount
from ledger.money import MAX_NANO, NANO_PER_TOKEN, Nano, format_amount, parse_amount

nanos = st.integers(0, MAX_NANO).map(Nano)


@given(nanos)
def test_every_amount_survives_the_wire(amount: Nano) -> None:
    assert parse_amount(format_amount(amount)) == amount


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("0.000014250", 14_250),
        ("1", NANO_PER_TOKEN),
        ("1.5", 1_500_000_000),
        ("007.10", 7_100_000_000),
        ("9223372036.854775807", MAX_NANO),
    ],
)
def test_an_amount_is_read_exactly(text: str, nano: int) -> None:
    assert parse_amount(text) == nano


def test_an_amount_is_written_with_nine_decimals() -> None:
    assert format_amount(Nano(14_250)) == "0.000014250"
    assert format_amount(Nano(0)) == "0.000000000"
    assert format_amount(Nano(-1)) == "-0.000000001"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "1.",
        ".5",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1\n",
        "1e3",
        "1_000",
        "1,5",
        "0x10",
        "NaN",
        "Infinity",
        "0.0000000001",
        "1.0000000000",
        "\u0661",  # ARABIC-INDIC DIGIT ONE, which int() would take
        "9223372036.854775808",
        "9" * 19,
        "9" * 5000,
    ],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(BadAmount) as refusal:
        parse_amount(text)
    assert refusal.value.code == "bad-amount"
    assert len(str(refusal.value)) < 200
