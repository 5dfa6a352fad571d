from itertools import count
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.errors import MalformedId
from app.kit.ids import IdPrefix, IdSource, format_id, parse_id


@given(st.lists(st.integers(0, 2**47), min_size=2, max_size=50), st.binary(min_size=8, max_size=8))
def test_ids_never_go_backwards_even_when_the_clock_does(times: list[int], noise: bytes) -> None:
    clock = iter(times)
    source = IdSource(now_ms=lambda: next(clock), random_bytes=lambda size: noise[:size])
    made = [source.new() for _ in times]
    assert made == sorted(set(made))
    assert all(value.version == 7 for value in made)


def test_an_id_carries_its_time_in_the_first_48_bits() -> None:
    source = IdSource(now_ms=lambda: 0x0123456789AB, random_bytes=bytes)
    assert source.new().hex.startswith("0123456789ab7000")


def test_more_ids_than_a_millisecond_holds_move_to_the_next() -> None:
    source = IdSource(now_ms=lambda: 5, random_bytes=bytes)
    made = [source.new() for _ in range(5_000)]
    assert len(set(made)) == 5_000
    assert made[-1].int >> 80 == 6


def test_the_text_form_reads_back() -> None:
    ticks = count()
    value = IdSource(now_ms=lambda: next(ticks), random_bytes=bytes).new()
    assert parse_id(IdPrefix.JOB, format_id(IdPrefix.JOB, value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job_",
        "quote_" + str(UUID(int=1)),
        str(UUID(int=1)),
        "job_" + str(UUID(int=0xABC)).upper(),
        "job_" + UUID(int=1).hex,
        "job_{" + str(UUID(int=1)) + "}",
        "job_" + str(UUID(int=1)) + "\n",
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(MalformedId):
        parse_id(IdPrefix.JOB, text)
