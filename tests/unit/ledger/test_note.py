"""Signed notes against public examples, and what is refused."""

import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadNote, BadPrivateKey
from ledger.hashing import sha256
from ledger.note import (
    COSIGNATURE,
    ED25519,
    MAX_NAME,
    MAX_NOTE_BYTES,
    MAX_SIGNATURES,
    Note,
    NoteSigner,
    VerifierKey,
    from_base64,
    require_name,
    sign_note,
)

FILE = json.loads(Path("tests/vectors/c2sp.json").read_text("utf-8"))
SIGNED = FILE["signed"]
FORM = FILE["form"]
LOG = NoteSigner("log.example/test", sha256(b"TEST log"))
OTHER = NoteSigner("other.example", sha256(b"TEST other"))
TEXT = "one line\n"

every_example = pytest.mark.parametrize("example", SIGNED, ids=lambda each: str(each["name"]))


@every_example
def test_a_public_example_is_signed_by_all_its_keys(example: dict[str, list[str]]) -> None:
    note = Note.parse(str(example["note"]).encode())
    keys = [VerifierKey.parse(each) for each in example["keys"]]
    assert note.signers(keys) == tuple(keys)
    assert note.signers([]) == ()


@every_example
def test_a_public_example_with_another_text_is_refused(example: dict[str, list[str]]) -> None:
    note = Note.parse(("." + str(example["note"])).encode())
    for key in example["keys"]:
        with pytest.raises(BadNote, match="not a signature of"):
            note.signers([VerifierKey.parse(key)])


@pytest.mark.parametrize("example", FORM, ids=lambda each: str(each["name"]))
def test_an_example_without_a_published_key_has_the_form(example: dict[str, object]) -> None:
    note = Note.parse(str(example["note"]).encode())
    assert note.text.count("\n") == example["text_lines"]
    assert [each.name for each in note.signatures] == example["signers"]


@pytest.mark.parametrize("text", FILE["keys"])
def test_a_public_verifier_key_is_read_and_written_back(text: str) -> None:
    key = VerifierKey.parse(text)
    assert key.kind == ED25519
    assert str(key) == text


def test_we_sign_the_example_of_go_byte_for_byte() -> None:
    example = next(each for each in SIGNED if "private_key" in each)
    seed = base64.b64decode(example["private_key"].split("+", 4)[4])[1:]
    text = example["note"].partition("\n\n")[0] + "\n"
    signer = NoteSigner("PeterNeumann", seed)
    assert sign_note(text, [signer]).decode() == example["note"]
    assert repr(signer) == f"NoteSigner({example['keys'][0]})"


@pytest.mark.parametrize("start", range(0, 60, 7))
@pytest.mark.parametrize("end", [-20, -1, None])
def test_a_part_of_a_verifier_key_is_none(start: int, end: int | None) -> None:
    if start or end is not None:
        with pytest.raises(BadNote):
            VerifierKey.parse(FILE["keys"][1][start:end])


def changed_key(*, raw: bytes = b"", name: str = "n", shown: str | None = None) -> str:
    given_id = sha256(name.encode() + b"\n" + raw)[:4].hex() if shown is None else shown
    return f"{name}+{given_id}+{base64.b64encode(raw).decode()}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (changed_key(raw=b"\1" + bytes(32), shown="00000000"), "the id of"),
        (changed_key(raw=b"\1" + bytes(32), shown="ABCDEF01"), "not a verifier key"),
        (changed_key(raw=b"\1" + bytes(31)), "not an Ed25519"),
        (changed_key(raw=b"\2" + bytes(32)), "not an Ed25519"),
        (changed_key(raw=b"\1" + bytes(32), name="a b"), "no key name"),
        (changed_key(raw=b"\1" + bytes(32), name="a\u2028b"), "no key name"),
        (changed_key(raw=b"\1" + bytes(32)) + "\n", "not a verifier key"),
        (changed_key(raw=b"\1" + bytes(32)) + "=", "not base64"),
    ],
)
def test_another_verifier_key_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadNote, match=reason):
        VerifierKey.parse(text)


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a+b", "a\tb", "a\nb", "a\u00a0b", "a\u0085b", "a\u2028b", "a\u2029b", "a\u200bb",
     "a\u3000b", "a\x7fb", "a\ufeffb", "a\ud800b", "x" * (MAX_NAME + 1)],
)  # fmt: skip
def test_what_looks_like_another_name_is_no_name(name: str) -> None:
    with pytest.raises(BadNote, match="no key name"):
        require_name(name)
    with pytest.raises(BadNote, match="no key name"):
        NoteSigner(name, bytes(32))


def test_a_seed_of_another_length_is_refused_without_being_shown() -> None:
    with pytest.raises(BadPrivateKey) as refused:
        NoteSigner("name", b"\x5a" * 31)
    assert refused.value.length == 31


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "blank line"),
        (b"a text\n", "blank line"),
        (b"a\n\n", "blank line"),
        ("\n\n— n AAAAAAA=\n".encode(), "blank line"),
        ("a\n\n— n AAAAAAA=".encode(), "blank line"),
        ("a\n— n AAAAAAA=\n".encode(), "blank line"),
        ("a\r\n\n— n AAAAAAA=\n".encode(), "control"),
        ("a\0\n\n— n AAAAAAA=\n".encode(), "control"),
        (b"\xff\n\n", "UTF-8"),
        (b"a\n\n- n AAAAAAA=\n", "another form"),
        ("a\n\n—  n AAAAAAA=\n".encode(), "another form"),
        ("a\n\n— n AAAAAAA= \n".encode(), "another form"),
        ("a\n\n— n AAAAAAA=\nmore\n".encode(), "another form"),
        ("a\n\n— n A\n".encode(), "not base64"),
        ("a\n\n— n AAAAAAB=\n".encode(), "one form"),
        ("a\n\n— n AAAAAA==\n".encode(), "without bytes"),
        ("a\n\n— n+ AAAAAAA=\n".encode(), "no key name"),
        (b"a" * (MAX_NOTE_BYTES + 1), "longer than"),
        (("a\n\n" + "— n AAAAAAA=\n" * (MAX_SIGNATURES + 1)).encode(), "more than"),
    ],
)
def test_a_note_of_another_form_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadNote, match=reason):
        Note.parse(data)


@pytest.mark.parametrize("text", ["", "no line feed", "a\r\n", "a\0\n"])
def test_what_is_no_text_is_not_signed(text: str) -> None:
    with pytest.raises(BadNote):
        sign_note(text, [LOG])


def test_the_last_blank_line_ends_the_text() -> None:
    text = "a\n\n\nb\n"
    note = Note.parse(sign_note(text, [LOG]))
    assert note.text == text
    assert note.signers([LOG.verifier]) == (LOG.verifier,)


def test_a_signature_in_the_text_signs_nothing() -> None:
    inner = sign_note(TEXT, [LOG]).decode()
    note = Note.parse(sign_note(inner, [OTHER]))
    assert note.signers([LOG.verifier, OTHER.verifier]) == (OTHER.verifier,)


def test_signers_come_in_the_order_of_the_lines_and_once() -> None:
    data = sign_note(TEXT, [OTHER, LOG, OTHER])
    assert Note.parse(data).signers([LOG.verifier, OTHER.verifier]) == (
        OTHER.verifier,
        LOG.verifier,
    )


def test_the_first_line_of_a_key_decides() -> None:
    good, bad = LOG.line(TEXT), LOG.line("another\n")
    assert Note.parse((TEXT + "\n" + good + bad).encode()).signers([LOG.verifier])
    with pytest.raises(BadNote, match="not a signature of"):
        Note.parse((TEXT + "\n" + bad + good).encode()).signers([LOG.verifier])


def test_a_key_of_the_same_name_with_another_id_is_another_key() -> None:
    namesake = NoteSigner(LOG.verifier.name, sha256(b"TEST namesake"))
    assert Note.parse(sign_note(TEXT, [namesake])).signers([LOG.verifier]) == ()


def test_two_keys_that_cannot_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VerifierKey, "id", property(lambda _self: b"same"))
    namesake = NoteSigner(LOG.verifier.name, sha256(b"TEST namesake"))
    note = Note.parse(sign_note(TEXT, [LOG]))
    with pytest.raises(BadNote, match="two keys of"):
        note.signers([LOG.verifier, namesake.verifier])
    assert note.signers([LOG.verifier, LOG.verifier]) == (LOG.verifier,)


def test_a_signature_of_another_length_is_refused() -> None:
    short = base64.b64encode(LOG.verifier.id + bytes(63)).decode()
    note = Note.parse(f"{TEXT}\n— {LOG.verifier.name} {short}\n".encode())
    with pytest.raises(BadNote, match="63 bytes"):
        note.signers([LOG.verifier])


def test_what_is_no_point_of_the_curve_signs_nothing() -> None:
    key = VerifierKey("n", b"\xff" * 32)
    line = base64.b64encode(key.id + bytes(64)).decode()
    with pytest.raises(BadNote, match="not a signature"):
        Note.parse(f"{TEXT}\n— n {line}\n".encode()).signers([key])


def cosigned(time: int, signed_time: int | None = None) -> tuple[VerifierKey, Note]:
    """A note with a witness's line; the key signs `signed_time`, the line says `time`."""
    key = VerifierKey("witness.example", LOG.verifier.public_key, COSIGNATURE)
    shown = time if signed_time is None else signed_time
    raw = LOG._key.sign(f"cosignature/v1\ntime {shown}\n{TEXT}".encode())
    line = base64.b64encode(key.id + time.to_bytes(8) + raw).decode()
    return key, Note.parse(f"{TEXT}\n— {key.name} {line}\n".encode())


def test_a_cosignature_covers_its_time() -> None:
    key, note = cosigned(1790000000)
    assert note.signers([key]) == (key,)
    key, note = cosigned(1790000001, signed_time=1790000000)
    with pytest.raises(BadNote, match="not a signature"):
        note.signers([key])
    key, note = cosigned(2**63)
    with pytest.raises(BadNote, match="above"):
        note.signers([key])


def test_a_plain_signature_is_no_cosignature() -> None:
    witness = VerifierKey(LOG.verifier.name, LOG.verifier.public_key, COSIGNATURE)
    assert witness.id != LOG.verifier.id
    assert Note.parse(sign_note(TEXT, [LOG])).signers([witness]) == ()
    assert VerifierKey.parse(str(witness)) == witness


@given(st.binary(max_size=70))
def test_base64_has_one_form(raw: bytes) -> None:
    text = base64.b64encode(raw).decode()
    assert from_base64(text) == raw
    for other in (text + "=", text + "\n", " " + text, text.rstrip("=") + "\u0130"):
        with pytest.raises(BadNote):
            from_base64(other)
    if text.endswith("="):
        with pytest.raises(BadNote):
            from_base64(text.rstrip("="))


PRINTED = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, range(32)))),
)


@given(st.lists(PRINTED, min_size=1).map(lambda lines: "\n".join(lines) + "\n"))
def test_any_text_that_is_signed_is_read_back(text: str) -> None:
    if text == "\n":  # nothing before the line feed is still a text of one empty line
        text = "a\n"
    note = Note.parse(sign_note(text, [LOG]))
    assert note.text == text
    assert note.signers([LOG.verifier]) == (LOG.verifier,)


@given(st.binary(max_size=200))
def test_junk_is_refused_as_a_note_or_is_one(junk: bytes) -> None:
    for data in (junk, sign_note(TEXT, [LOG]) + junk, junk + sign_note(TEXT, [LOG])):
        with contextlib.suppress(BadNote):
            note = Note.parse(data)
            assert data.startswith(note.text.encode())
            assert not note.signers([LOG.verifier]) or note.text == TEXT
