"""The examples of the receipt pages are the vectors; members, limits and codes are the code's."""

import json
import re
from pathlib import Path

import pytest

from ledger import log_entry, manifest, receipt
from ledger.checkpoint import MAX_PROOF_HASHES, LogProof, open_checkpoint
from ledger.encoding import canonical_json
from ledger.errors import LedgerError
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf, entry_leaf_hash
from ledger.log_keys import MAX_KEYS, KeyTable, follow
from ledger.manifest import ExportManifest
from ledger.merkle import BatchIndex, LogIndex, Tree, TreeHead, verify_consistency, verify_inclusion
from ledger.note import MAX_NOTE_BYTES, MAX_SIGNATURES, Note, VerifierKey
from ledger.receipt import Receipt
from ledger.strict_json import MAX_DEPTH
from tests.vectors.make_receipts import PATH, fill, paths, render

SPEC = Path(__file__).parents[3] / "docs" / "spec"
PAGES = ("log.md", "receipt-batch.md", "receipt.md", "export-manifest.md")
VECTORS = json.loads(PATH.read_text("utf-8"))
LOG = VECTORS["log"]
KEY = VerifierKey.parse(VECTORS["policy"].split()[1])

every_page = pytest.mark.parametrize("page", PAGES)


def text(page: str) -> str:
    return (SPEC / page).read_text(encoding="utf-8")


def unhex(shown: str) -> bytes:
    return bytes.fromhex(shown.removeprefix("0x"))


def test_the_vectors_are_as_the_script_writes_them() -> None:
    assert PATH.read_text("utf-8") == render()


@every_page
def test_every_example_is_the_vector(page: str) -> None:
    assert fill(text(page), VECTORS) == text(page)
    assert paths(text(page))


@every_page
def test_every_error_code_exists(page: str) -> None:
    known = {each.code for each in LedgerError.__subclasses__() if hasattr(each, "code")}
    rows = re.findall(r"^\| (`.*?) \|", text(page).split("## Errors")[1], re.MULTILINE)
    listed = {code for row in rows for code in re.findall(r"`([a-z-]+)`", row)}
    assert listed
    assert listed <= known


@pytest.mark.parametrize(
    ("page", "members"),
    [
        ("receipt-batch.md", log_entry._HEADER_MEMBERS),
        ("export-manifest.md", manifest._MEMBERS),
        ("receipt.md", json.loads(VECTORS["receipts"]["completed"]).keys()),
        ("log.md", {"version", "keys", "role", "key", "from", "until"}),
    ],
)
def test_every_member_is_explained(page: str, members: tuple[str, ...]) -> None:
    table = {
        name
        for line in text(page).splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert set(members) <= table


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("log.md", f"At most {MAX_NOTE_BYTES:,} bytes of UTF-8 and {MAX_SIGNATURES} signature"),
        ("log.md", f"at most\n{MAX_PROOF_HASHES} hashes"),
        ("log.md", f"at most {MAX_KEYS}, in the order"),
        ("log.md", f"Nesting of at most {MAX_DEPTH}"),
        ("receipt-batch.md", f"1 to {log_entry.MAX_BATCH_RECORDS:,}"),
        ("receipt-batch.md", f"1 to {log_entry.MAX_ASSETS}"),
        ("export-manifest.md", f"at most {manifest.MAX_FILES}:"),
        ("receipt.md", f"at most {receipt.MAX_RECEIPT_BYTES:,} bytes"),
        ("receipt.md", f"at most {receipt.MAX_BATCH_PROOF} hashes"),
        ("receipt.md", f"at most {receipt.MAX_KEY_ENTRIES}, in the log"),
    ],
)
def test_every_limit_is_the_codes(page: str, said: str) -> None:
    assert said in text(page)


def test_the_log_of_the_vectors_is_one_log() -> None:
    leaves = []
    for entry in LOG["entries"]:
        kind, data = EntryKind(entry["kind"]), entry["entry"].encode()
        assert entry_leaf(kind, data) == entry["leaf"].encode()
        assert entry_leaf_hash(kind, data) == unhex(entry["leaf_hash"])
        leaves.append(unhex(entry["leaf_hash"]))
    assert [unhex(root) for root in LOG["roots"]] == [
        Tree(leaves[:size]).root for size in range(len(leaves) + 1)
    ]
    for index, proof in enumerate(LOG["proofs"]):
        LogProof.parse(proof).verify(leaves[index], TreeHead(len(leaves), unhex(LOG["roots"][-1])))
    for each in LOG["consistency"]:
        old, new = (TreeHead(each[end], unhex(LOG["roots"][each[end]])) for end in ("from", "to"))
        verify_consistency(old, new, [unhex(hash_) for hash_ in each["proof"]])


def test_the_keys_of_the_vectors_can_be_followed_and_sign_every_size() -> None:
    table: KeyTable | None = None
    for index, entry in enumerate(LOG["entries"]):
        if entry["kind"] == EntryKind.KEY_ROTATION:
            data = entry["entry"].encode()
            table = follow(table, data, index=LogIndex(index), trusted=[KEY])
        assert table is not None
        key = table.checkpoint_key(index + 1)
        assert key is not None
        note = LOG["checkpoints"][index + 1].encode()
        checkpoint, _ = open_checkpoint(note, origin=LOG["origin"], keys=[key])
        assert checkpoint.head == TreeHead(index + 1, unhex(LOG["roots"][index + 1]))
    assert table is not None
    assert len(table.keys) == 4
    witness = VerifierKey.parse(VECTORS["witnessed_policy"].split("witness w1 ")[1].split()[0])
    cosigned = Note.parse(LOG["cosigned"].encode())
    assert cosigned.signers([witness]) == (witness,)


def test_the_batches_of_the_vectors_hold_their_records() -> None:
    for batch in VECTORS["batches"]:
        header = BatchHeader.parse(batch["header"].encode())
        assert header.records_root == unhex(batch["root"])
        for index, (record, proof) in enumerate(
            zip(batch["records"], batch["proofs"], strict=True)
        ):
            verify_inclusion(
                unhex(record["leaf_hash"]),
                BatchIndex(index),
                size=header.count,
                proof=[unhex(each) for each in proof],
                root=header.records_root,
            )


def test_the_manifest_of_the_vectors_is_the_entry() -> None:
    entry = LOG["entries"][-1]
    assert entry["kind"] == EntryKind.EXPORT_MANIFEST
    read = ExportManifest.read(Note.parse(entry["entry"].encode()))
    assert read.encode() == VECTORS["manifest"].encode()
    assert canonical_json(json.loads(VECTORS["manifest"])) == VECTORS["manifest"].encode()


@pytest.mark.parametrize("name", VECTORS["receipts"])
def test_a_receipt_of_the_vectors_is_written_back(name: str) -> None:
    data = VECTORS["receipts"][name].encode()
    assert Receipt.parse(data).encode() == data
