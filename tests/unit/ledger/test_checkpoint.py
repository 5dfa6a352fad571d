"""Checkpoints and the proofs that travel with them: what they say, and what is refused."""

import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import MAX_PROOF_HASHES, PROOF_LINE, Checkpoint, LogProof, open_checkpoint
from ledger.errors import BadNote, BadProof
from ledger.hashing import sha256
from ledger.merkle import MAX_TREE_SIZE, LogIndex, Tree, TreeHead, leaf_hash
from ledger.note import MAX_NOTE_BYTES, Note, NoteSigner, VerifierKey, sign_note

FILE = json.loads(Path("tests/vectors/c2sp.json").read_text("utf-8"))
ORIGIN = "log.example/test"
LOG = NoteSigner(ORIGIN, sha256(b"TEST log"))
WITNESS = NoteSigner("witness.example", sha256(b"TEST witness"))
HASHES = [leaf_hash(b"%d" % number) for number in range(7)]
HEAD = TreeHead(7, Tree(HASHES).root)
CHECKPOINT = Checkpoint(ORIGIN, HEAD)
ROOT = base64.b64encode(HEAD.root).decode()
SIGNED = CHECKPOINT.sign([LOG])


def note(text: str) -> Note:
    return Note.parse(sign_note(text, [LOG]))


def test_a_published_checkpoint_is_opened_with_its_log_and_witnesses() -> None:
    example = FILE["signed"][-1]
    keys = [VerifierKey.parse(each) for each in example["keys"]]
    origin = example["note"].split("\n")[0]
    checkpoint, signers = open_checkpoint(example["note"].encode(), origin=origin, keys=keys)
    assert signers == tuple(keys)
    assert checkpoint.head.size == 1432088532
    assert checkpoint.text() == example["note"].partition("\n\n")[0] + "\n"


@pytest.mark.parametrize("example", FILE["form"][1:], ids=lambda each: str(each["name"]))
def test_the_example_of_the_specification_is_read(example: dict[str, str]) -> None:
    checkpoint = Checkpoint.read(Note.parse(example["note"].encode()))
    assert (checkpoint.origin, checkpoint.head.size) == ("example.com/behind-the-sofa", 20852163)


def test_the_proof_of_the_specification_has_our_form() -> None:
    text = FILE["proof_head"] + "\n" + SIGNED.decode()
    proof = LogProof.parse(text)
    assert (proof.index, len(proof.hashes), proof.text()) == (73894, 5, text)


def test_a_checkpoint_that_is_signed_is_opened() -> None:
    data = CHECKPOINT.sign([WITNESS, LOG])
    opened, signers = open_checkpoint(data, origin=ORIGIN, keys=[LOG.verifier])
    assert (opened, signers) == (CHECKPOINT, (LOG.verifier,))


@pytest.mark.parametrize(
    ("origin", "keys", "reason"),
    [
        ("log.example/other", [LOG.verifier], "not of"),
        (ORIGIN, [], "no key that is known"),
        (ORIGIN, [WITNESS.verifier], "no key that is known"),
    ],
)
def test_a_checkpoint_of_another_log_or_key_is_refused(
    origin: str, keys: list[VerifierKey], reason: str
) -> None:
    with pytest.raises(BadNote, match=reason):
        open_checkpoint(SIGNED, origin=origin, keys=keys)


@pytest.mark.parametrize(
    "text",
    [
        f"{ORIGIN}\n7\n",
        f"{ORIGIN}\n7\n{ROOT}\nextension\n",
        f"{ORIGIN}\n7\n{ROOT}\n\n",
        f"\n7\n{ROOT}\n",
        f"log example\n7\n{ROOT}\n",
        f"log\u2028example\n7\n{ROOT}\n",
        *(f"{ORIGIN}\n{size}\n{ROOT}\n" for size in (
            "", "07", "+7", "-7", "7 ", " 7", "7.0", "7e0", "0x7", "\u0667", "\uff17",
            "\u00b2", "1_0", str(MAX_TREE_SIZE + 1), "9" * 5000,
        )),
        f"{ORIGIN}\n7\n{ROOT[:-1]}\n",
        f"{ORIGIN}\n7\n{ROOT} \n",
        f"{ORIGIN}\n7\n{base64.b64encode(bytes(31)).decode()}\n",
        f"{ORIGIN}\n7\n{base64.b64encode(bytes(33)).decode()}\n",
        f"{ORIGIN}\n7\n\n",
    ],
)  # fmt: skip
def test_another_text_is_no_checkpoint(text: str) -> None:
    with pytest.raises(BadNote):
        Checkpoint.read(note(text))


@given(st.integers(0, MAX_TREE_SIZE), st.binary(min_size=32, max_size=32))
def test_any_checkpoint_is_read_back(size: int, root: bytes) -> None:
    checkpoint = Checkpoint(ORIGIN, TreeHead(size, root))
    assert open_checkpoint(checkpoint.sign([LOG]), origin=ORIGIN, keys=[LOG.verifier])[0] == (
        checkpoint
    )


def proof(index: int) -> LogProof:
    return LogProof(LogIndex(index), Tree(HASHES).proof(index), SIGNED)


@pytest.mark.parametrize("index", range(7))
def test_a_proof_is_read_back_and_proves_its_entry_only(index: int) -> None:
    made = proof(index)
    assert LogProof.parse(made.text()) == made
    made.verify(HASHES[index], HEAD)
    with pytest.raises(BadProof):
        made.verify(HASHES[index - 1], HEAD)
    with pytest.raises(BadProof):
        made.verify(HASHES[index], TreeHead(7, bytes(32)))


GOOD = proof(3).text()
HASH_LINE = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        PROOF_LINE,
        GOOD.replace("@v1", "@v2"),
        GOOD.replace("index 3", "index 03"),
        GOOD.replace("index 3", "index \u0663"),
        GOOD.replace("index 3", "index -3"),
        GOOD.replace("index 3", "index"),
        GOOD.replace("index 3", "Index 3"),
        GOOD.replace("index 3", f"index {MAX_TREE_SIZE + 1}"),
        GOOD.replace("index 3\n", ""),
        GOOD.replace("index 3\n", "extra AAAA\nindex 3\n"),
        GOOD.replace("index 3\n", "index 3\nindex 3\n"),
        GOOD.replace("\n", "\r\n"),
        GOOD.partition("\n\n")[0],
        PROOF_LINE + "\nindex 0\n" + f"{HASH_LINE}\n" * (MAX_PROOF_HASHES + 1) + "\n" + "a",
        PROOF_LINE + "\nindex 0\n" + HASH_LINE[:-1] + "\n\na",
        PROOF_LINE + "\nindex 0\n" + base64.b64encode(bytes(31)).decode() + "\n\na",
        GOOD + "\ud800",
        " " * (MAX_NOTE_BYTES + 1),
    ],
)
def test_a_proof_of_another_form_is_refused(text: str) -> None:
    with pytest.raises((BadProof, BadNote)):
        LogProof.parse(text)


@given(st.text(max_size=100))
def test_junk_is_refused_as_a_proof_or_is_the_one_text_of_one(junk: str) -> None:
    for text in (junk, PROOF_LINE + "\n" + junk, PROOF_LINE + "\nindex 0\n" + junk):
        with contextlib.suppress(BadProof, BadNote):
            assert LogProof.parse(text).text() == text
