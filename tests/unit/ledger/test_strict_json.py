"""JSON that two parsers could read differently, or that takes too long, is refused."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.encoding import canonical_json
from ledger.errors import BadEntry
from ledger.strict_json import (
    MAX_DEPTH,
    bytes_of,
    integer_of,
    list_of,
    object_of,
    parse_canonical,
    parse_object,
    require_members,
    text_of,
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"{}{}", "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b'{"a":1,}', "not JSON"),
        (b'{"a":01}', "not JSON"),
        (b'{"a":+1}', "not JSON"),
        (b'{"a":"\x01"}', "not JSON"),
        (b'{"a":"\\x"}', "not JSON"),
        (b'\xef\xbb\xbf{"a":1}', "not JSON"),
        (b"\xff\xfe{\0}\0", "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":"\xc0\x80"}', "not UTF-8"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"a"', "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'{"a":1,"a":1}', "twice"),
        (b'{"a":1,"\\u0061":1}', "twice"),
        (b'{"b":{"a":1,"a":2}}', "twice"),
        (b'{"a":NaN}', "no integer"),
        (b'{"a":Infinity}', "no integer"),
        (b'{"a":-Infinity}', "no integer"),
        (b'{"a":1.0}', "no integer"),
        (b'{"a":1e5}', "no integer"),
        (b'{"a":1E400}', "no integer"),
        (b'{"a":-0}', "no integer"),
        (b'{"a":-0.0}', "no integer"),
        (b'{"a":9007199254740992}', "above"),
        (b'{"a":-9007199254740992}', "above"),
        (b'{"a":' + b"9" * 5000 + b"}", "above"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "deeper"),
        (b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "deeper"),
    ],
)
def test_what_parsers_disagree_on_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadEntry, match=reason) as refused:
        parse_object(data, what="thing")
    assert refused.value.field == "thing"
    with pytest.raises(BadEntry):
        parse_canonical(data, what="thing")


def test_brackets_inside_strings_are_not_depth() -> None:
    text = "[" * 100 + '\\"{' + "\\"
    assert parse_object(json.dumps({"a": text}).encode(), what="x") == {"a": text}
    deep = b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH
    assert parse_object(deep, what="x")


MEGABYTE = 1_000_000
LONG = {
    "an unfinished string of quotes": b'{"' + b'\\"' * (MEGABYTE // 2),
    "an unfinished string of backslashes": b'{"' + b"\\" * MEGABYTE,
    "quotes only": b'"' * MEGABYTE,
    "brackets only": b"[" * MEGABYTE,
    "closing brackets only": b"]" * MEGABYTE,
    "a late duplicate": b"{%s}" % b",".join(b'"%d":0' % (each % 99_999) for each in range(100_000)),
    "digits": b'{"a":' + b"1" * MEGABYTE + b"}",
    "digits of a fraction": b'{"a":1.' + b"1" * MEGABYTE + b"}",
    "white space": b" " * MEGABYTE,
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_is_refused_in_linear_time(name: str) -> None:
    start = time.process_time()
    with pytest.raises(BadEntry):
        parse_object(LONG[name], what="x")
    assert time.process_time() - start < 5  # the quadratic forms took minutes


@pytest.mark.parametrize(
    "data",
    [
        b' {"a":"b"}',
        b'{"a":"b"}\n',
        b'{"a": "b"}',
        b'{"b":"1","a":"2"}',
        b'{"a":"\\u0062"}',
        b'{"a":"\\/"}',
        b'{"a":"\\u001F"}',
        b'{"a":"\\u2028"}',
        b'{"a":"\\ud800"}',
        b'{"\\ud800":"a"}',
    ],
)
def test_another_text_of_the_same_value_is_not_canonical(data: bytes) -> None:
    assert parse_object(data, what="x")
    with pytest.raises(BadEntry, match="not in its RFC 8785 form"):
        parse_canonical(data, what="x")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), VALUES, max_size=4)


@given(OBJECTS)
def test_a_canonical_text_is_read_back(value: dict[str, object]) -> None:
    assert parse_canonical(canonical_json(value), what="x") == value


@given(st.binary(max_size=100))
def test_junk_is_refused_and_nothing_else(junk: bytes) -> None:
    for data in (junk, b'{"a":' + junk, b'{"a":"' + junk + b'"}'):
        with contextlib.suppress(BadEntry):
            assert parse_object(data, what="x") == json.loads(data)


def test_members_are_exactly_those() -> None:
    require_members({"a": 1, "b": 2}, "a", "b", what="x")
    with pytest.raises(BadEntry, match=r"x\.b: missing"):
        require_members({"a": 1}, "a", "b", what="x")
    with pytest.raises(BadEntry, match=r"unknown member '\\u2028c'"):
        require_members({"a": 1, "\u2028c": 2}, "a", what="x")


@pytest.mark.parametrize(
    "value",
    [7, None, True, 7.0, "", "07", "+7", "-7", "-0", "7 ", " 7", "7\n", "7.0", "7e0", "0x7", "1_0",
     "\u0667", "\uff17", "\u00b2", "9223372036854775808", "9" * 79, "9" * 100_000],
)  # fmt: skip
def test_what_is_no_decimal_string_is_refused(value: object) -> None:
    with pytest.raises(BadEntry, match="field"):
        integer_of(value, "field")


@given(st.integers(0, 2**63 - 1))
def test_a_number_has_one_decimal_string(number: int) -> None:
    assert integer_of(str(number), "field") == number
    with pytest.raises(BadEntry):
        integer_of(str(number), "field", limit=number - 1)


@pytest.mark.parametrize(
    "value",
    [None, 7, b"0x", "", "0", "00" * 32, "0X" + "00" * 32, "0x" + "AA" * 32, "0x" + "0" * 63,
     "0x" + "00" * 31, "0x" + "00" * 33, "0x" + "00" * 32 + "\n", "0x" + "\uff10" * 64],
)  # fmt: skip
def test_what_are_no_bytes_is_refused(value: object) -> None:
    with pytest.raises(BadEntry, match="field"):
        bytes_of(value, "field")


@given(st.binary(max_size=80))
def test_bytes_have_one_text(raw: bytes) -> None:
    assert bytes_of("0x" + raw.hex(), "field", length=None) == raw
    with pytest.raises(BadEntry, match="bytes instead of"):
        bytes_of("0x" + raw.hex(), "field", length=len(raw) + 1)


def test_another_kind_of_value_is_refused() -> None:
    with pytest.raises(BadEntry, match="not a text"):
        text_of(7, "field")
    with pytest.raises(BadEntry, match="lone surrogate"):
        text_of("\ud800", "field")
    with pytest.raises(BadEntry, match="not a list"):
        list_of({}, "field", limit=1)
    with pytest.raises(BadEntry, match="not a list of at most 1"):
        list_of([1, 2], "field", limit=1)
    with pytest.raises(BadEntry, match="not an object"):
        object_of([], "field")
