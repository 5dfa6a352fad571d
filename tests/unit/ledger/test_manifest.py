"""Export manifests: one text each, signed by the log's key, and every rule refuses something."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ledger.encoding import Address, canonical_json
from ledger.errors import BadEntry, BadNote
from ledger.hashing import sha256
from ledger.log_entry import MAX_ASSETS, AssetSums
from ledger.manifest import MAX_FILES, ExportFile, ExportManifest
from ledger.money import Nano
from ledger.note import Note, NoteSigner, sign_note

ORIGIN = "log.example/test"
LOG = NoteSigner(ORIGIN, sha256(b"TEST log"))


def sums(byte: str, charge: int) -> AssetSums:
    asset = Address("0x" + byte * 20)
    return AssetSums(asset=asset, charge=Nano(charge), held=Nano(charge + 1), released=Nano(1))


MANIFEST = ExportManifest(
    origin=ORIGIN,
    format="jsonl",
    from_at=1_790_000_000,
    to_at=1_790_086_400,
    filters=(("wallet", "eip155:31337:0x7099"),),
    first_batch=3,
    last_batch=5,
    log_size=9,
    records=12,
    transfers=40,
    sums=(sums("0a", 5), sums("9f", 7)),
    files=(
        ExportFile("records.jsonl", 812, b"\1" * 32),
        ExportFile("transfers.jsonl", 0, bytes(32)),
    ),
)
EMPTY = replace(MANIFEST, first_batch=None, last_batch=None, log_size=0, records=0, sums=())
Change = Callable[[Any], object]


def put(**members: object) -> Change:
    return lambda value: value.update({k.rstrip("_"): v for k, v in members.items()})


def put_file(**members: object) -> Change:
    return lambda value: value["files"][1].update(members)


def entry(change: Change) -> Note:
    value = json.loads(MANIFEST.encode())
    change(value)
    text = f"offpeak/export-manifest@v1\n{ORIGIN}\n{canonical_json(value).decode()}\n"
    return Note.parse(sign_note(text, [LOG]))


@pytest.mark.parametrize("manifest", [MANIFEST, EMPTY, replace(MANIFEST, filters=(), files=())])
def test_a_manifest_is_read_back_and_signed_the_same_again(manifest: ExportManifest) -> None:
    data = manifest.sign([LOG])
    note = Note.parse(data)
    assert note.signers([LOG.verifier]) == (LOG.verifier,)
    assert ExportManifest.read(note) == manifest
    assert ExportManifest.read(note).sign([LOG]) == data


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("manifest.version", put(version="2")),
        ("manifest.format", put(format="JSONL")),
        ("manifest.format", put(format="")),
        ("manifest.format", put(format=None)),
        ("manifest.from", put(from_=1_790_000_000)),
        ("manifest.from", put(from_="-1")),
        ("manifest.to", put(to="1790000000")),
        ("manifest.to", put(to="0")),
        ("manifest.filters", put(filters=[])),
        ("manifest.filters.wallet", put(filters={"wallet": 7})),
        ("manifest.first_batch", put(first_batch=3)),
        ("manifest.last_batch", put(last_batch="2")),
        ("manifest.last_batch", put(last_batch=None)),
        ("manifest.last_batch", put(first_batch=None)),
        ("manifest.log_size", put(log_size="0")),
        ("manifest.log_size", put(first_batch=None, last_batch=None, records="0")),
        ("manifest.log_size", put(log_size=str(2**63))),
        ("manifest.records", put(records="0")),
        ("manifest.records", put(records="1e3")),
        ("manifest.transfers", put(transfers="\u0664")),
        ("manifest.sums", put(sums={})),
        ("manifest.sums", put(sums=[1] * (MAX_ASSETS + 1))),
        ("manifest.sums", lambda value: value["sums"].reverse()),
        ("manifest.sums[1]", lambda value: value["sums"][1].update(held_nano="9")),
        ("manifest.files", put(files=None)),
        ("manifest.files", put(files=[1] * (MAX_FILES + 1))),
        ("manifest.files", put_file(name="records.jsonl")),
        ("manifest.files[1].name", put_file(name="../records.jsonl")),
        ("manifest.files[1].name", put_file(name="a/b")),
        ("manifest.files[1].name", put_file(name=".hidden")),
        ("manifest.files[1].name", put_file(name="a\n")),
        ("manifest.files[1].name", put_file(name="\uff41")),
        ("manifest.files[1].name", put_file(name="")),
        ("manifest.files[1].name", put_file(name="a" * 101)),
        ("manifest.files[1].bytes", put_file(bytes="-1")),
        ("manifest.files[1].sha256", put_file(sha256="0x")),
        ("manifest.files[1]", put_file(more="1")),
        ("manifest", put(more="1")),
        ("manifest.to", lambda value: value.pop("to")),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(field: str, change: Change) -> None:
    with pytest.raises(BadEntry) as refused:
        ExportManifest.read(entry(change))
    assert refused.value.field == field


@pytest.mark.parametrize(
    "text",
    [
        f"offpeak/export-manifest@v2\n{ORIGIN}\n{MANIFEST.encode().decode()}\n",
        f"offpeak/key-rotation@v1\n{ORIGIN}\n{MANIFEST.encode().decode()}\n",
        f"offpeak/export-manifest@v1\n{MANIFEST.encode().decode()}\n",
        f"offpeak/export-manifest@v1\n{ORIGIN}\n{MANIFEST.encode().decode()}\nmore\n",
        f"offpeak/export-manifest@v1\n{ORIGIN}\n {MANIFEST.encode().decode()}\n",
        f"offpeak/export-manifest@v1\na b\n{MANIFEST.encode().decode()}\n",
    ],
)
def test_another_text_is_no_manifest(text: str) -> None:
    with pytest.raises((BadEntry, BadNote)):
        ExportManifest.read(Note.parse(sign_note(text, [LOG])))
