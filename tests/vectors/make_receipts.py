"""Writes `receipts.json` and the examples of `docs/spec/` from it, the same on every run.

Run from the repository's root: `python -m tests.vectors.make_receipts`. All keys are TEST keys from
public texts; nobody may ever trust or fund them. In the pages, a code block whose info string
says `vector=PATH` holds the value at that path and a last line feed where the value has none.
"""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.encoding import canonical_json
from ledger.hashing import sha256
from ledger.log_entry import (
    BatchHeader,
    EntryKind,
    add_up,
    entry_leaf,
    entry_leaf_hash,
    record_leaf,
)
from ledger.manifest import ExportFile, ExportManifest
from ledger.merkle import leaf_hash
from ledger.note import COSIGNATURE, VerifierKey
from ledger.onchain import ContractCheck, ContractMethod
from ledger.receipt import Receipt
from tests.receipt_world import NOW, Job, World, secret, small_world

PATH = Path(__file__).with_name("receipts.json")
PAGES = Path(__file__).parents[2] / "docs" / "spec"
WITNESS_NAME = "witness.example/w1"
WITNESSED_AT = NOW + 120
_BLOCK = re.compile(r"^(```\w+ vector=(\S+)\n)(.*?)^```$", re.DOTALL | re.MULTILINE)
NOTE = (
    "A receipt log of OFFPEAK made with TEST keys: its entries, checkpoints, proofs and receipts."
    " Never trust or fund a key in here."
)


def show(raw: bytes) -> str:
    """Bytes as the pages show them."""
    return "0x" + raw.hex()


def witness_key() -> VerifierKey:
    """The TEST witness."""
    key = Ed25519PrivateKey.from_private_bytes(secret("witness"))
    return VerifierKey(WITNESS_NAME, key.public_key().public_bytes_raw(), COSIGNATURE)


def cosigned(checkpoint: bytes) -> bytes:
    """A checkpoint with the witness's line at its end (C2SP tlog-cosignature)."""
    key = Ed25519PrivateKey.from_private_bytes(secret("witness"))
    text = checkpoint.decode().partition("\n\n")[0] + "\n"
    signature = key.sign(f"cosignature/v1\ntime {WITNESSED_AT}\n{text}".encode())
    raw = witness_key().id + WITNESSED_AT.to_bytes(8) + signature
    return checkpoint + f"— {WITNESS_NAME} {base64.b64encode(raw).decode()}\n".encode()


def make_manifest(world: World) -> ExportManifest:
    """An export of the first two batches."""
    batches = world.batches[:2]
    records = [job.record for batch in batches for job in batch.jobs]
    sums = [each for batch in batches for each in BatchHeader.parse(batch.header).sums]
    lines = b"".join(record.canonical() + b"\n" for record in records)
    return ExportManifest(
        origin=world.origin,
        format="jsonl",
        from_at=NOW,
        to_at=NOW + 3600,
        filters=(),
        first_batch=0,
        last_batch=1,
        log_size=3,
        records=len(records),
        transfers=0,
        sums=add_up(sums),
        files=(ExportFile("records.jsonl", len(lines), sha256(lines)),),
    )


def _leaf(kind: EntryKind, entry: bytes) -> dict[str, object]:
    return {
        "kind": str(kind),
        "entry": entry.decode(),
        "leaf": entry_leaf(kind, entry).decode(),
        "leaf_hash": show(entry_leaf_hash(kind, entry)),
    }


def _record(job: Job) -> dict[str, object]:
    leaf = record_leaf(job.digest, job.record_signature)
    return {
        "digest": show(job.digest),
        "signature": show(job.record_signature),
        "leaf": leaf.decode(),
        "leaf_hash": show(leaf_hash(leaf)),
    }


def _batch(world: World, number: int) -> dict[str, object]:
    batch = world.batches[number]
    return {
        "records": [_record(job) for job in batch.jobs],
        "root": show(batch.tree.root),
        "proofs": [[show(each) for each in proof] for proof in batch.tree.proofs()],
        "header": batch.header.decode(),
        "header_digest": show(sha256(batch.header)),
    }


def _log(world: World) -> dict[str, object]:
    size = len(world.entries)
    return {
        "origin": world.origin,
        "entries": [_leaf(*each) for each in world.entries],
        "roots": [show(world.head(each).root) for each in range(size + 1)],
        "checkpoints": [None, *(world.checkpoint(each).decode() for each in range(1, size + 1))],
        "cosigned": cosigned(world.checkpoint()).decode(),
        "consistency": [
            {"from": old, "to": new, "proof": [show(each) for each in world.consistency(old, new)]}
            for new in range(1, size + 1)
            for old in range(1, new + 1)
        ],
        "proofs": [world.log_proof(each).text() for each in range(size)],
    }


def make_world() -> World:
    """The small world with an export logged at its end."""
    world = small_world()
    world.append(EntryKind.EXPORT_MANIFEST, make_manifest(world).sign([world.signer()]))
    return world


def by_contract(receipt: Receipt) -> Receipt:
    """The receipt as if a contract wallet had accepted, by a signature that only it understands."""
    check = ContractCheck(ContractMethod.DEPLOYED, 1_000, secret("a block"))
    acceptance = replace(
        receipt.acceptance, signature=secret("a passkey") * 5, contract_check=check
    )
    return replace(receipt, acceptance=acceptance)


def make() -> dict[str, object]:
    """The whole file."""
    world = make_world()
    names = {"completed": 0, "failed": 2, "cancelled": 3, "correction": 4, "rotated": 6}
    pending = world.jobs[-1]
    receipts = {name: world.receipt(world.jobs[place]) for name, place in names.items()}
    receipts["early"] = world.receipt(world.jobs[0], size=2)
    receipts["pending"] = world.receipt(pending)
    receipts["witnessed"] = world.receipt(world.jobs[0], checkpoint=cosigned(world.checkpoint()))
    receipts["anchored"] = replace(world.receipt(world.jobs[6]), anchor=world.anchor())
    receipts["contract_wallet"] = by_contract(world.receipt(world.jobs[0]))
    witness = f"witness w1 {witness_key()}"
    manifest = make_manifest(world)
    return {
        "note": NOTE,
        "policy": world.policy(),
        "witnessed_policy": world.policy(witness, "group all all w1", "quorum all"),
        "batches": [_batch(world, number) for number in range(len(world.batches))],
        "log": _log(world),
        "manifest": canonical_json(json.loads(manifest.encode())).decode(),
        "receipts": {name: each.encode().decode() for name, each in receipts.items()},
    }


def render() -> str:
    """The file's text."""
    return json.dumps(make(), indent=1, ensure_ascii=False) + "\n"


def look_up(vectors: object, path: str) -> str:
    """The text of a block: the value at a dotted path, ended by one line feed."""
    value = vectors
    for step in path.split("."):
        if isinstance(value, str):
            value = json.loads(value)
        value = value[int(step)] if isinstance(value, list) else value[step]  # type: ignore[index]
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return text if text.endswith("\n") else text + "\n"


def fill(page: str, vectors: object) -> str:
    """A page with its examples as the vectors have them."""
    return _BLOCK.sub(lambda match: f"{match[1]}{look_up(vectors, match[2])}```", page)


def paths(page: str) -> list[str]:
    """The vectors that a page shows."""
    return [match[2] for match in _BLOCK.finditer(page)]


def main() -> None:
    """Write the file, and the examples into the pages."""
    text = render()
    PATH.write_text(text, encoding="utf-8")
    for page in PAGES.glob("*.md"):
        was = page.read_text(encoding="utf-8")
        now = fill(was, json.loads(text))
        if now != was:
            page.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    main()
