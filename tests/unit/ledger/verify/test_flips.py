"""No character of a receipt can change without being seen."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.verify.exits import Exit
from tests.unit.ledger.verify.checking import (
    assert_verified,
    compact,
    document,
    good,
    verdict_on,
    world,
)

COMPACT = compact(document()).decode()
INDENTED = good().encode().decode()
HISTORIC = compact(document(world().receipt(world().jobs[2]))).decode()


def put(text: str, place: int, sign: str) -> bytes:
    return (text[:place] + sign + text[place + 1 :]).encode()


def test_every_flipped_character_of_a_compact_receipt_is_refused() -> None:
    assert_verified(verdict_on(COMPACT.encode()))
    passed = [
        place
        for place, sign in enumerate(COMPACT)
        if verdict_on(put(COMPACT, place, chr(ord(sign) ^ 1))).exit is not Exit.INVALID
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
    longer = COMPACT[:place] + data.draw(st.sampled_from("x0\\}")) + COMPACT[place:]
    assert verdict_on(longer.encode()).exit is Exit.INVALID


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(INDENTED) - 1), st.sampled_from(" \n\t"))
def test_white_space_between_members_means_nothing(place: int, sign: str) -> None:
    is_between = INDENTED[place] in " \n" and INDENTED[:place].rsplit("\n", 1)[-1].strip() == ""
    verdict = verdict_on(put(INDENTED, place, sign))
    if is_between:
        assert_verified(verdict)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_get_a_verdict(data: bytes) -> None:
    assert verdict_on(data).exit is Exit.INVALID
