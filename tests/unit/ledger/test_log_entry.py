"""Leaves, batch headers and their sums: one form each, and every rule refuses something."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.encoding import Address, canonical_json, checksum_address
from ledger.errors import BadEntry, BadLength
from ledger.hashing import sha256
from ledger.log_entry import (
    MAX_ASSETS,
    MAX_BATCH_RECORDS,
    NO_HEADER,
    AssetSums,
    BatchHeader,
    EntryKind,
    add_up,
    entry_leaf,
    entry_leaf_hash,
    record_leaf,
    record_leaf_hash,
)
from ledger.merkle import leaf_hash
from ledger.money import MAX_NANO, Nano

USDC = Address("0x" + "9f" * 20)
OTHER = Address("0x" + "0a" * 20)


def sums(asset: Address, charge: int, released: int) -> AssetSums:
    held = Nano(charge + released)
    return AssetSums(asset=asset, charge=Nano(charge), held=held, released=Nano(released))


HEADER = BatchHeader(
    number=3,
    start=10,
    end=14,
    records_root=bytes(32),
    sums=(sums(OTHER, 0, 5), sums(USDC, 7, 8)),
    first_at=1_790_000_000,
    last_at=1_790_000_059,
    key_id="0123abcd",
    previous_header=b"\1" * 32,
)
Change = Callable[[Any], object]


def changed(change: Change) -> bytes:
    value: dict[str, object] = json.loads(HEADER.encode())
    change(value)
    return canonical_json(value)


def put(**members: object) -> Change:
    return lambda value: value.update(members)


def put_sum(place: int, **members: object) -> Change:
    return lambda value: value["sums"][place].update(members)


def test_the_leaves_are_ascii_lines_that_name_their_kind() -> None:
    digest, signature = b"\2" * 32, b"\3" * 65
    line = record_leaf(digest, signature)
    assert line == b"offpeak/usage-record@v1 %s %s\n" % (
        (digest.hex().encode(), sha256(signature).hex().encode())
    )
    assert record_leaf_hash(digest, signature) == leaf_hash(line)
    for kind in EntryKind:
        line = entry_leaf(kind, b"entry")
        assert line == f"offpeak/{kind}@v1 {sha256(b'entry').hex()}\n".encode()
        assert entry_leaf_hash(kind, b"entry") == leaf_hash(line)
    assert len({entry_leaf(kind, b"entry") for kind in EntryKind}) == 3
    with pytest.raises(BadLength):
        record_leaf(b"\2" * 31, signature)


def test_a_header_is_read_back() -> None:
    assert BatchHeader.parse(HEADER.encode()) == HEADER
    assert HEADER.count == 4
    assert b"\n" not in HEADER.encode()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("header.version", put(version="2")),
        ("header.version", put(version="01")),
        ("header.number", put(number=3)),
        ("header.number", put(number=str(2**63))),
        ("header.number", put(number="\u0663")),
        ("header.start", put(start="-1")),
        ("header.count", put(end="10", count="0")),
        ("header.count", put(end="9", count="1")),
        ("header.count", put(count="5")),
        ("header.count", put(end=str(11 + MAX_BATCH_RECORDS), count=str(MAX_BATCH_RECORDS + 1))),
        ("header.count", put(end=str(2**63 - 1))),
        ("header.records_root", put(records_root="0x" + "00" * 31)),
        ("header.records_root", put(records_root="0x" + "AA" * 32)),
        ("header.records_root", put(records_root="00" * 32)),
        ("header.sums", put(sums=[])),
        ("header.sums", put(sums={})),
        ("header.sums", put(sums=[1] * (MAX_ASSETS + 1))),
        ("header.sums[0]", put(sums=[1])),
        ("header.sums", lambda value: value["sums"].reverse()),
        ("header.sums", put_sum(0, asset=checksum_address(USDC))),
        ("header.sums[0].asset", put_sum(0, asset="0x" + "0A" * 20)),
        ("header.sums[1].asset", put_sum(1, asset=USDC)),
        ("header.sums[1].asset", put_sum(1, asset=None)),
        ("header.sums[1]", put_sum(1, extra="1")),
        ("header.sums[1]", put_sum(1, held_nano="16")),
        ("header.sums[1].held_nano", put_sum(1, held_nano=str(MAX_NANO + 1))),
        ("header.sums[1].charge_nano", put_sum(1, charge_nano=7)),
        ("header.sums[1].released_nano", put_sum(1, released_nano="-8")),
        ("header.first_at", put(first_at="1790000060")),
        ("header.last_at", put(last_at="1790000059.5")),
        ("header.key_id", put(key_id="0123ABCD")),
        ("header.key_id", put(key_id="0123abcd0")),
        ("header.key_id", put(key_id=1)),
        ("header.previous_header", put(previous_header="0x")),
        ("header.previous_header", put(previous_header="0x" + NO_HEADER.hex())),
        ("header.previous_header", put(start="0", end="4")),
        ("header", put(extra="1")),
        ("header.number", lambda value: value.pop("number")),
    ],
)
def test_a_header_that_breaks_a_rule_is_refused(field: str, change: Change) -> None:
    with pytest.raises(BadEntry) as refused:
        BatchHeader.parse(changed(change))
    assert refused.value.field == field


def test_the_first_header_has_no_other_before_it() -> None:
    data = changed(put(start="0", end="4", number="0", previous_header="0x" + NO_HEADER.hex()))
    assert BatchHeader.parse(data).previous_header == NO_HEADER


@pytest.mark.parametrize("other", [b" ", b"\n", b"\0"])
def test_a_header_has_one_text(other: bytes) -> None:
    for data in (HEADER.encode() + other, other + HEADER.encode()):
        with pytest.raises(BadEntry):
            BatchHeader.parse(data)
    with pytest.raises(BadEntry, match="RFC 8785"):
        BatchHeader.parse(json.dumps(json.loads(HEADER.encode())).encode())


AMOUNTS = st.tuples(st.sampled_from([USDC, OTHER]), st.integers(0, 10**9), st.integers(0, 10**9))


@given(st.lists(AMOUNTS))
def test_sums_are_the_same_in_any_order_and_grouping(
    amounts: list[tuple[Address, int, int]],
) -> None:
    each = [sums(*amount) for amount in amounts]
    total = add_up(each)
    assert add_up(reversed(each)) == total
    assert add_up([*add_up(each[:3]), *add_up(each[3:])]) == total
    assert [one.asset for one in total] == sorted({one.asset for one in each})
    assert sum(one.charge for one in total) == sum(one.charge for one in each)
    assert [AssetSums.parse(one.message(), "x") for one in total] == list(total)


def test_nothing_adds_up_to_nothing() -> None:
    assert add_up([]) == ()


@given(st.binary(max_size=80), st.integers(0, 600), st.integers(0, 255))
def test_junk_is_refused_as_a_header(junk: bytes, place: int, byte: int) -> None:
    good = bytearray(HEADER.encode())
    good[place % len(good)] = byte
    for data in (junk, bytes(good)):
        try:
            parsed = BatchHeader.parse(data)
        except BadEntry:
            continue
        assert parsed.encode() == data
