"""No character of a receipt can change without being seen."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.verify.exits import Exit
from tests.unit.ledger.verify.checking import (
    compact,
    document,
    good,
    refusal,
    verdict_on,
    world,
)

COMPACT = compact(document()).decode()
INDENTED = good().encode().decode()
HISTORIC = compact(document(world().receipt(world().jobs[2]))).decode()


def put(text: str, place: int, sign: str) -> bytes:
    return (text[:place] + sign + text[place + 1 :]).encode()


@pytest.mark.parametrize("part", range(4))
def test_every_flipped_character_of_a_compact_receipt_is_refused(part: int) -> None:
    assert refusal(verdict_on(COMPACT.encode())) is None
    passed = [
        place
        for place, sign in enumerate(COMPACT)
        if place % 4 == part
        and verdict_on(put(COMPACT, place, chr(ord(sign) ^ 1))).exit is not Exit.INVALID
    ]
    assert passed == []


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_any_other_character_anywhere_is_refused(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([COMPACT, HISTORIC]))
    place = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.one_of(st.characters(codec="utf-8"), st.sampled_from('0aF"\\{}[], \n')))
    verdict = verdict_on(put(text, place, sign))
    assert (verdict.exit is Exit.VERIFIED) == (sign == text[place])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_receipt_without_a_character_or_with_one_more_is_refused_but_for_spaces(
    data: st.DataObject,
) -> None:
    place = data.draw(st.integers(0, len(COMPACT) - 1))
    shorter = COMPACT[:place] + COMPACT[place + 1 :]
    assert verdict_on(shorter.encode()).exit is Exit.INVALID
    longer = COMPACT[:place] + data.draw(st.sampled_from('x0}"')) + COMPACT[place:]
    assert verdict_on(longer.encode()).exit is Exit.INVALID


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(INDENTED) - 1), st.sampled_from(" \n\t"))
def test_white_space_between_members_means_nothing(place: int, sign: str) -> None:
    is_between = INDENTED[place] in " \n" and INDENTED[:place].rsplit("\n", 1)[-1].strip() == ""
    verdict = verdict_on(put(INDENTED, place, sign))
    if is_between:
        assert refusal(verdict) is None


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a document, the outermost left out."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [(*path, key) for key, _ in inner] + [
        found for key, held in inner for found in places(held, (*path, key))
    ]


PLACES = places(document())
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["0x", "0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(PLACES), JSON)
def test_any_other_value_anywhere_is_refused(path: tuple[str | int, ...], value: object) -> None:
    changed: Any = document()
    at = changed
    for key in path[:-1]:
        at = at[key]
    was, at[path[-1]] = at[path[-1]], value
    is_kept_text_left_out = value is None and path in {("opening",), ("opening", "answer")}
    if was is not value and not is_kept_text_left_out:
        assert verdict_on(json.dumps(changed).encode()).exit is Exit.INVALID


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_get_a_verdict(data: bytes) -> None:
    assert verdict_on(data).exit is Exit.INVALID
