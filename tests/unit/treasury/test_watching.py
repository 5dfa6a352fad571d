"""What a watcher decides, as functions of what it was shown."""

from collections.abc import Sequence
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import given

from app.chain.blocks import Block
from app.treasury.events import EventKind, LogPlace
from app.treasury.watching import (
    NOTHING_STORED,
    STALE_SECONDS,
    ChainSums,
    EndpointHeads,
    StoredEvent,
    StoredSums,
    choose,
    due_at_safe,
    gaps,
    ranges,
    suspects,
)
from ledger.encoding import Address
from ledger.money import MAX_NANO, Nano

NOW = 10**9
"""After every block here."""


def block(number: int, *, time: int | None = None) -> Block:
    return Block(
        number=number,
        hash=number.to_bytes(32),
        parent=bytes(32),
        timestamp=12 * number if time is None else time,
        base_fee=0,
    )


def heads(latest: int, safe: int, finalized: int) -> EndpointHeads:
    return EndpointHeads(latest=block(latest), safe=block(safe), finalized=block(finalized))


def event(number: int, amount: int, *, payer: str = "0xa", kind: str = "deposited") -> StoredEvent:
    return StoredEvent(
        id=UUID(int=number),
        place=LogPlace(number, 0, number.to_bytes(32), bytes(32)),
        kind=EventKind(kind),
        payer=payer,
        amount=amount,
    )


def test_one_endpoint_is_believed_and_of_several_the_least_depth_counts() -> None:
    alone = choose([heads(100, 90, 80)], turn=7, now=NOW)
    assert (alone.reader, alone.safe.number, alone.finalized.number) == (0, 90, 80)
    bold = heads(100, 100, 100)  # calls its youngest block final
    both = choose([bold, heads(99, 90, 80)], turn=0, now=NOW)
    assert (both.latest.number, both.safe.number, both.finalized.number) == (100, 90, 80)


def test_an_endpoint_that_lags_neither_reads_nor_holds_the_others_up() -> None:
    stale = heads(100 - STALE_SECONDS // 12 - 1, 10, 10)
    for turn in range(4):
        found = choose([stale, heads(100, 90, 80)], turn=turn, now=NOW)
        assert (found.reader, found.finalized.number) == (1, 80)


def test_a_block_from_the_future_makes_no_other_endpoint_look_late() -> None:
    liar = EndpointHeads(latest=block(500, time=2 * NOW), safe=block(499), finalized=block(498))
    honest = EndpointHeads(latest=block(100, time=NOW - 12), safe=block(90), finalized=block(80))
    found = choose([liar, honest], turn=0, now=NOW)
    assert (found.safe.number, found.finalized.number) == (90, 80)


three_heads = st.lists(st.integers(0, 300), min_size=3, max_size=3).map(
    lambda numbers: heads(*sorted(numbers, reverse=True))
)


@given(seen=st.lists(three_heads, min_size=1, max_size=4), turn=st.integers(0, 10))
def test_no_endpoint_makes_a_block_deeper_than_a_fresh_one_says(
    seen: list[EndpointHeads], turn: int
) -> None:
    found = choose(seen, turn=turn, now=NOW)
    newest = max(one.latest.timestamp for one in seen)
    fresh = [one for one in seen if newest - one.latest.timestamp <= STALE_SECONDS]
    assert seen[found.reader] in fresh
    assert found.latest == seen[found.reader].latest
    assert found.finalized.number == min(one.finalized.number for one in fresh)
    assert found.finalized.number <= found.safe.number <= found.latest.number
    readers = {choose(seen, turn=each, now=NOW).reader for each in range(len(fresh))}
    assert len(readers) == len(fresh), "every fresh endpoint has its turn"


@given(
    after=st.integers(-1, 50),
    last=st.integers(-1, 400),
    size=st.integers(1, 60),
    limit=st.integers(1, 8),
)
def test_ranges_leave_no_gap_and_are_bounded(after: int, last: int, size: int, limit: int) -> None:
    found = ranges(after, last, size=size, limit=limit)
    assert len(found) <= limit
    covered = [number for first, end in found for number in range(first, end + 1)]
    assert covered == list(range(after + 1, after + 1 + len(covered)))
    assert all(0 < end - first + 1 <= size for first, end in found)
    whole = max(last - after, 0)
    assert len(covered) == min(whole, size * limit)


def test_what_was_not_shown_again_is_suspect_newest_first() -> None:
    stored = [event(number, 1) for number in (3, 1, 2)]
    found = suspects(stored, {stored[1].place})
    assert [each.place.block_number for each in found] == [3, 2]


def limit(waiting: Sequence[StoredEvent], credited: int = 0, finalized: int = 0) -> list[int]:
    due = due_at_safe(
        waiting,
        finalized=finalized,
        credited={Address("0xa"): Nano(credited * 1_000)},
        safe_limit=Nano(10_000),
    )
    return [each.place.block_number for each in due]


def test_deposits_are_credited_at_safe_while_they_fit_under_the_limit_together() -> None:
    waiting = [event(1, 6), event(2, 6), event(3, 4)]
    assert limit(waiting) == [1, 3]
    assert limit(waiting, credited=5) == [3]
    assert limit(waiting, credited=11) == []
    assert limit([event(1, 6), event(2, 6, payer="0xb")]) == [1, 2]


def test_only_young_deposits_that_the_ledger_can_hold_are_credited_at_safe() -> None:
    assert limit([event(1, 6), event(2, 6)], finalized=1) == [2]
    assert limit([event(1, 1, kind="withdrawn"), event(2, 1, kind="plain-transfer")]) == []
    assert limit([event(1, MAX_NANO)]) == []
    assert not event(1, MAX_NANO).is_bookable


@given(
    amounts=st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["0xa", "0xb"])), max_size=12),
    credited=st.integers(0, 15),
)
def test_no_wallet_is_credited_more_than_the_limit_before_it_is_final(
    amounts: list[tuple[int, str]], credited: int
) -> None:
    waiting = [event(n + 1, amount, payer=payer) for n, (amount, payer) in enumerate(amounts)]
    before = {Address("0xa"): Nano(credited * 1_000)}
    due = due_at_safe(waiting, finalized=0, credited=before, safe_limit=Nano(10_000))
    for payer in ("0xa", "0xb"):
        had = credited if payer == "0xa" else 0
        now = sum(each.amount for each in due if each.payer == payer)
        assert now == 0 or had + now <= 10
        left = [each for each in waiting if each.payer == payer and each not in due]
        assert all(had + now + each.amount > 10 for each in left)
    assert [each.place for each in due] == sorted(each.place for each in due)


def sums(counted: int, unclaimed: int, anchored: int = 0, broken: int = 0) -> StoredSums:
    return StoredSums(counted=counted, unclaimed=unclaimed, anchored=anchored, broken_links=broken)


SAID = ChainSums(counted=3, tokens=100, liability=60, earned=30, anchored=5)


def test_all_is_stored_when_count_tokens_and_anchor_are_the_contracts() -> None:
    assert gaps(sums(3, 10, 5), SAID) == []


def test_each_difference_is_told() -> None:
    for wrong in (sums(2, 10, 5), sums(4, 10, 5), sums(3, 9, 5), sums(3, 11, 5), sums(3, 10, 4)):
        assert len(gaps(wrong, SAID)) == 1
    assert len(gaps(sums(3, 10, 5, 1), SAID)) == 1
    assert len(gaps(sums(1, 0, 0), SAID)) == 3


def test_sums_of_neighbouring_blocks_add_up() -> None:
    assert sums(2, 5, 4) + sums(1, -2, 0) == sums(3, 3, 4)
    assert NOTHING_STORED + sums(3, 10, 5) == sums(3, 10, 5)
