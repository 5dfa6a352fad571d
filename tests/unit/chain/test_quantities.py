import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chain.quantities import (
    MalformedValue,
    address,
    data,
    quantity,
    show_data,
    show_quantity,
    word,
)


@given(st.integers(0, 2**256 - 1))
def test_a_quantity_is_read_as_it_is_written(value: int) -> None:
    assert quantity("q", show_quantity(value)) == value


@given(st.binary(max_size=100))
def test_data_is_read_as_it_is_written(value: bytes) -> None:
    assert data("d", show_data(value)) == value


@pytest.mark.parametrize(
    "given_value",
    [
        *("", "0x", "0x00", "0x01", "1", "0X1", "0xg", "-0x1", "0x-1", " 0x1", "0x1 ", "0x1\n"),
        *("0x_1", "0x\u0661", "0x" + "1" * 65, 1, 1.0, True, None, [], {}, b"0x1"),
    ],
)
def test_other_forms_of_a_quantity_are_refused(given_value: object) -> None:
    with pytest.raises(MalformedValue):
        quantity("q", given_value)


@pytest.mark.parametrize("given_value", ["", "0x1", "0xgg", "00", "0x00 ", "0x00\n", None, 7, []])
def test_other_forms_of_data_are_refused(given_value: object) -> None:
    with pytest.raises(MalformedValue):
        data("d", given_value)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_word_has_32_bytes(length: int) -> None:
    assert word("w", "0x" + "ab" * 32) == b"\xab" * 32
    with pytest.raises(MalformedValue):
        word("w", "0x" + "ab" * length)


def test_an_address_is_lower_case_inside_and_its_checksum_counts() -> None:
    checksummed = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert address("a", checksummed) == address("a", checksummed.lower()) == checksummed.lower()
    for wrong in (checksummed.replace("F", "f", 1), "0x" + "11" * 19, None, "0x" + "11" * 32):
        with pytest.raises(MalformedValue):
            address("a", wrong)
