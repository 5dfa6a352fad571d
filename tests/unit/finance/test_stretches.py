"""Neighbouring batches are read through one cursor, and none between them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.finance.export.rows import BatchPlace
from app.finance.export.service import stretches


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=12))
def test_stretches_hold_exactly_the_places_of_their_batches(sizes: list[tuple[int, bool]]) -> None:
    batches: list[BatchPlace] = []
    wanted: list[int] = []
    start = 0
    for number, (size, is_wanted) in enumerate(sizes):
        if is_wanted:
            batches.append(
                BatchPlace(
                    number=number, start=start, end=start + size, header=b"", log_index=number + 1
                )
            )
            wanted += range(start, start + size)
        start += size
    found = stretches(batches)
    assert [place for first, end in found for place in range(first, end)] == wanted
    assert all(end < following for (_, end), (following, _) in pairwise(found))
