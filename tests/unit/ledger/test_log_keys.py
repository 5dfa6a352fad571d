"""Key tables and their rotation: who may change them, and what they may not say."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.encoding import canonical_json
from ledger.errors import BadEntry, BadNote
from ledger.hashing import sha256
from ledger.log_keys import MAX_KEYS, KeyRole, KeyTable, LogKey, follow
from ledger.merkle import LogIndex
from ledger.note import COSIGNATURE, Note, NoteSigner, VerifierKey, sign_note
from ledger.signing import address_of

ORIGIN = "log.example/test"
OLD = NoteSigner(ORIGIN, sha256(b"TEST old checkpoint key"))
NEW = NoteSigner(ORIGIN, sha256(b"TEST new checkpoint key"))
STRANGER = NoteSigner(ORIGIN, sha256(b"TEST stranger"))
RECORD = address_of(sha256(b"TEST record key"))
RECORD_2 = address_of(sha256(b"TEST second record key"))


def checkpoint(signer: NoteSigner, start: int, end: int | None = None) -> LogKey:
    key = str(signer.verifier)
    return LogKey(role=KeyRole.CHECKPOINT, key=key, valid_from=start, valid_until=end)


def record(key: str, start: int, end: int | None = None) -> LogKey:
    return LogKey(role=KeyRole.RECORD, key=key, valid_from=start, valid_until=end)


FIRST = KeyTable(ORIGIN, (checkpoint(OLD, 1), record(RECORD, 1)))
GENESIS = FIRST.sign([OLD])
INDEX = LogIndex(9)
ROTATED = KeyTable(
    ORIGIN,
    (checkpoint(OLD, 1, 10), record(RECORD, 1, 12), checkpoint(NEW, 10), record(RECORD_2, 10)),
)


def rotate(table: KeyTable, signers: list[NoteSigner], before: KeyTable | None = FIRST) -> KeyTable:
    return follow(before, table.sign(signers), index=INDEX, trusted=[OLD.verifier])


def test_the_first_table_is_believed_because_its_key_is_trusted() -> None:
    table = follow(None, GENESIS, index=LogIndex(0), trusted=[OLD.verifier])
    assert table == FIRST
    assert table.checkpoint_key(0) is None
    assert table.checkpoint_key(1) == table.checkpoint_key(10**9) == OLD.verifier
    assert (table.record_keys(LogIndex(0)), table.record_keys(LogIndex(1))) == ((), (RECORD,))


def test_a_rotation_is_signed_by_the_old_and_the_new_key() -> None:
    table = rotate(ROTATED, [OLD, NEW])
    assert (table.checkpoint_key(9), table.checkpoint_key(10)) == (OLD.verifier, NEW.verifier)
    assert table.record_keys(LogIndex(9)) == (RECORD,)
    assert table.record_keys(LogIndex(11)) == (RECORD, RECORD_2)
    assert table.record_keys(LogIndex(12)) == (RECORD_2,)
    assert rotate(ROTATED, [NEW, OLD]) == table


@pytest.mark.parametrize("signers", [[OLD], [NEW], [STRANGER], [NEW, STRANGER], [OLD, STRANGER]])
def test_one_of_the_two_is_not_enough(signers: list[NoteSigner]) -> None:
    with pytest.raises(BadNote, match="not both signed"):
        rotate(ROTATED, signers)


def test_a_record_key_changes_with_the_checkpoint_key_alone() -> None:
    table = KeyTable(ORIGIN, (checkpoint(OLD, 1), record(RECORD, 1, 10), record(RECORD_2, 10)))
    assert rotate(table, [OLD]) == table
    with pytest.raises(BadNote, match="not both signed"):
        rotate(table, [NEW])


def test_a_first_table_by_nobody_trusted_is_refused() -> None:
    with pytest.raises(BadNote, match="no key that is trusted"):
        follow(None, GENESIS, index=LogIndex(0), trusted=[NEW.verifier])
    with pytest.raises(BadNote, match="no key that is trusted"):
        follow(None, GENESIS, index=LogIndex(0), trusted=[])


def test_trust_does_not_replace_the_signature_of_the_new_key() -> None:
    table = KeyTable(ORIGIN, (checkpoint(NEW, 1),))
    with pytest.raises(BadNote, match="not both signed"):
        rotate(table, [OLD], before=None)
    assert rotate(table, [OLD, NEW], before=None) == table


def test_a_forged_signature_beside_good_ones_spoils_the_entry() -> None:
    entry = ROTATED.sign([OLD, NEW]).decode()
    line = NEW.line("another text\n")
    forged = entry.replace(NEW.line(ROTATED.text()), line).encode()
    with pytest.raises(BadNote, match="not a signature of"):
        follow(FIRST, forged, index=INDEX, trusted=[OLD.verifier])


def test_a_table_whose_last_key_has_ended_is_final() -> None:
    ended = KeyTable(ORIGIN, (checkpoint(OLD, 1, 5),))
    taken = KeyTable(ORIGIN, (checkpoint(OLD, 1, 5), checkpoint(STRANGER, 10)))
    for table in (taken, KeyTable(ORIGIN, (checkpoint(OLD, 1, 5), checkpoint(STRANGER, 5)))):
        with pytest.raises(BadEntry):
            rotate(table, [STRANGER], before=ended)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (replace(ROTATED, origin="log.example/other"), "another log"),
        (KeyTable(ORIGIN, (checkpoint(OLD, 1),)), "a key is missing"),
        (KeyTable(ORIGIN, (checkpoint(OLD, 1, 10), record(RECORD, 1))), "names no checkpoint key"),
        (KeyTable(ORIGIN, (record(RECORD, 1), checkpoint(OLD, 1))), "a key has changed"),
        (KeyTable(ORIGIN, (checkpoint(OLD, 2), record(RECORD, 1))), "a key has changed"),
        (KeyTable(ORIGIN, (checkpoint(STRANGER, 1), record(RECORD, 1))), "a key has changed"),
        (KeyTable(ORIGIN, (checkpoint(OLD, 1), record(RECORD, 1, 9))), "is past"),
        (KeyTable(ORIGIN, (*FIRST.keys, record(RECORD_2, 9))), "in the past"),
        (KeyTable(ORIGIN, (*FIRST.keys, record(RECORD, 10))), "one key twice"),
        (KeyTable(ORIGIN, (*FIRST.keys, checkpoint(NEW, 10))), "overlap"),
        (KeyTable(ORIGIN, (checkpoint(OLD, 1, 10), record(RECORD, 1), checkpoint(NEW, 11))), "gap"),
        (KeyTable(ORIGIN, (*FIRST.keys, record(RECORD_2, 10, 10))), "before it begins"),
        (KeyTable(ORIGIN, (checkpoint(OLD, 1, 0), record(RECORD, 1))), "before it begins"),
    ],
)  # fmt: skip
def test_a_table_that_changes_what_was_is_refused(table: KeyTable, reason: str) -> None:
    with pytest.raises(BadEntry, match=reason):
        rotate(table, [OLD, NEW])


def test_another_origin_is_refused_even_with_its_own_keys() -> None:
    other = "log.example/other"
    key = NoteSigner(other, sha256(b"TEST old checkpoint key"))
    table = KeyTable(other, (checkpoint(key, 1), record(RECORD, 1)))
    with pytest.raises(BadEntry, match=f"of {other}, not of {ORIGIN}"):
        rotate(table, [key])


def test_an_end_once_set_stays() -> None:
    before = KeyTable(ORIGIN, (checkpoint(OLD, 1), record(RECORD, 1, 20)))
    for until in (19, 21, None):
        table = KeyTable(ORIGIN, (checkpoint(OLD, 1), record(RECORD, 1, until)))
        with pytest.raises(BadEntry, match="an end that was set"):
            rotate(table, [OLD], before=before)
    assert rotate(before, [OLD], before=before) == before


Change = Callable[[Any], object]


def entry(change: Change) -> bytes:
    value = json.loads(FIRST.text().split("\n")[2])
    change(value)
    text = f"offpeak/key-rotation@v1\n{ORIGIN}\n{canonical_json(value).decode()}\n"
    return sign_note(text, [OLD])


def put(place: int, **members: object) -> Change:
    return lambda value: value["keys"][place].update({k.rstrip("_"): v for k, v in members.items()})


WITNESS = str(VerifierKey(ORIGIN, OLD.verifier.public_key, COSIGNATURE))


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("key-rotation.version", lambda value: value.update(version="2")),
        ("key-rotation.version", lambda value: value.update(version=1)),
        ("key-rotation", lambda value: value.update(more="1")),
        ("key-rotation.keys", lambda value: value.pop("keys")),
        ("key-rotation.keys", lambda value: value.update(keys={})),
        ("key-rotation.keys", lambda value: value.update(keys=[{}] * (MAX_KEYS + 1))),
        ("key-rotation.keys[0]", lambda value: value.update(keys=["key"])),
        ("key-rotation.keys[0]", put(0, more="1")),
        ("key-rotation.keys[0].until", lambda value: value["keys"][0].pop("until")),
        ("key-rotation.keys[0].role", put(0, role="witness")),
        ("key-rotation.keys[0].role", put(0, role=None)),
        ("key-rotation.keys[0].key", put(0, key=WITNESS)),
        ("key-rotation.keys[0].key", put(0, key=7)),
        ("key-rotation.keys[0].from", put(0, from_=1)),
        ("key-rotation.keys[0].from", put(0, from_="01")),
        ("key-rotation.keys[0].until", put(0, until="")),
        ("key-rotation.keys[0].until", put(0, until=False)),
        ("key-rotation.keys[1].key", put(1, key=RECORD)),
        ("key-rotation.keys[1].key", put(1, key="0x00")),
        ("key-rotation", lambda value: value.update(keys=[])),
    ],
)
def test_a_table_of_another_form_is_refused(field: str, change: Change) -> None:
    with pytest.raises(BadEntry) as refused:
        follow(None, entry(change), index=LogIndex(0), trusted=[OLD.verifier])
    assert refused.value.field == field


@pytest.mark.parametrize("key", ["nothing", str(OLD.verifier)[:-4], str(OLD.verifier) + "\n"])
def test_a_key_of_another_form_is_refused(key: str) -> None:
    with pytest.raises(BadNote):
        KeyTable.read(Note.parse(entry(put(0, key=key))))


@pytest.mark.parametrize(
    "text",
    [
        "offpeak/key-rotation@v2\n" + FIRST.text().partition("\n")[2],
        FIRST.text() + "more\n",
        FIRST.text().replace('"from":"1"', '"from": "1"'),
        FIRST.text().replace("\n" + ORIGIN, "\nno origin"),
        FIRST.text().replace("\n" + ORIGIN, ""),
        "offpeak/export-manifest@v1\n" + FIRST.text().partition("\n")[2],
    ],
)
def test_another_text_is_no_table(text: str) -> None:
    with pytest.raises((BadEntry, BadNote)):
        follow(None, sign_note(text, [OLD]), index=LogIndex(0), trusted=[OLD.verifier])


@given(st.integers(0, 2**40), st.integers(1, 2**40), st.integers(0, 2**41))
def test_ranges_are_half_open(start: int, length: int, place: int) -> None:
    key = record(RECORD, start, start + length)
    assert key.counts_at(place) is (place in range(start, start + length))
    assert record(RECORD, start).counts_at(place) is (place >= start)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_one_checkpoint_key_counts_for_each_size(lengths: list[int]) -> None:
    """Whoever follows a chain of rotations ends with one key for every size from 1 on."""
    signers = [NoteSigner(ORIGIN, sha256(b"TEST key %d" % n)) for n in range(len(lengths) + 1)]
    table = follow(
        None, KeyTable(ORIGIN, (checkpoint(signers[0], 1),)).sign(signers[:1]),
        index=LogIndex(0), trusted=[signers[0].verifier],
    )  # fmt: skip
    size = 1
    for old, (new, length) in zip(signers, zip(signers[1:], lengths, strict=True), strict=False):
        size += length
        *rest, last = table.keys
        keys = (*rest, replace(last, valid_until=size), checkpoint(new, size))
        entry = KeyTable(ORIGIN, keys).sign([old, new])
        table = follow(table, entry, index=LogIndex(size - 1), trusted=[])
    for each in range(1, size + 2):
        assert sum(key.counts_at(each) for key in table.keys) == 1
    assert table.checkpoint_key(size) == signers[-1].verifier
