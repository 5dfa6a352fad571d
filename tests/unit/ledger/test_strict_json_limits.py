"""JSON of one form: what parsers disagree on is refused, quickly whatever the bytes are."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadEntry
from ledger.strict_json import MAX_DEPTH, _depth, parse_object

TEXT = st.text(st.sampled_from('ab"\\[]{}\n'), max_size=8)
VALUES = st.recursive(
    TEXT | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=20,
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(VALUES)
def test_depth_is_counted_outside_of_strings(value: object) -> None:
    assert _depth(json.dumps(value)) == depth(value)
    assert _depth(json.dumps(value, ensure_ascii=False, indent=1)) == depth(value)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": "' + b'\\"' * 1_900_000,
        b"{" + b'"' * 3_900_000,
        b"{" + b'"\\' * 1_900_000,
        b"{" + b",".join(b'"%d":1' % n for n in range(300_000)) + b',"299999":2}',
        b"[" * 3_000_000,
    ],
    ids=["escaped quotes", "quotes", "backslashes", "many members, the last one twice", "brackets"],
)
def test_four_megabytes_of_anything_are_refused_in_time_that_grows_with_them(data: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(BadEntry):
        parse_object(data, what="it")
    assert time.process_time() - begun < 30  # a quadratic scan takes many minutes


@pytest.mark.parametrize("number", ["1.5", "-0.25", "1e3", "0.1"])
def test_fractions_are_taken_only_where_they_are_allowed(number: str) -> None:
    data = f'{{"a": {number}}}'.encode()
    assert parse_object(data, what="it", fractions=True) == {"a": float(number)}
    with pytest.raises(BadEntry):
        parse_object(data, what="it")


@pytest.mark.parametrize("number", ["1e999", "NaN", "Infinity", "9007199254740992", "1" * 5000])
def test_numbers_out_of_range_are_refused_even_then(number: str) -> None:
    with pytest.raises(BadEntry):
        parse_object(f'{{"a": {number}}}'.encode(), what="it", fractions=True)


def test_nesting_is_limited() -> None:
    for levels, fine in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False)):
        data = b'{"a":' * levels + b"1" + b"}" * levels
        if fine:
            parse_object(data, what="it")
        else:
            with pytest.raises(BadEntry, match="nested"):
                parse_object(data, what="it")
