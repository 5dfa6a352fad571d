"""What is given to both verifiers: files, policies, dishonest worlds and mixed receipts."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from ledger.encoding import Address
from ledger.log_entry import BatchHeader, EntryKind
from ledger.merkle import LogIndex
from ledger.money import Nano
from ledger.receipt import KeyEntry
from ledger.usage import UsageRecord
from tests.receipt_world import Edits, World, small_world
from tests.vectors.make_receipts import PATH, cosigned, make_world

VECTORS = json.loads(PATH.read_text("utf-8"))
GOOD: str = VECTORS["receipts"]["rotated"]
POLICY: str = VECTORS["policy"]
Case = tuple[str, bytes, str]
"""What it is called, the receipt, the policy."""


def files() -> Iterator[Case]:
    """Files that are no receipts, or not one."""
    data = GOOD.encode()
    yield "empty", b"", POLICY
    yield "cut short", data[: len(data) // 2], POLICY
    yield "more behind", data + b"{}", POLICY
    yield "byte order mark", b"\xef\xbb\xbf" + data, POLICY
    yield "not UTF-8", data.replace(b"offpeak/receipt", b"offpeak\xff/receipt"), POLICY
    yield "UTF-16", GOOD.encode("utf-16"), POLICY
    yield (
        "a member twice",
        data.replace(b'"anchor"', b'"format": "offpeak/receipt@v1", "anchor"'),
        POLICY,
    )
    yield (
        "an escaped member twice",
        data.replace(b'"anchor"', b'"\\u0066ormat": "x", "anchor"'),
        POLICY,
    )
    yield "a lone surrogate", data.replace(b'"stop"', b'"\\ud800"'), POLICY
    yield "NaN", data.replace(b'"anchor": null', b'"anchor": NaN'), POLICY
    yield "a huge number", data.replace(b'"anchor": null', b'"anchor": ' + b"9" * 400), POLICY
    yield "deep", b"[" * 100_000, POLICY
    yield "another digit", data.replace(b'"index": "1"', '"index": "\u0661"'.encode()), POLICY
    yield "too large", data + b" " * 4_000_000, POLICY


def policies() -> Iterator[Case]:
    """The good receipt under other policies, with what a policy may say."""
    world = make_world()
    data = GOOD.encode()
    old, new = (str(world.signer(number).verifier) for number in (0, 1))
    first, second = (world.record_key(number).address for number in (0, 1))
    stranger = World("two", world.origin)
    yield "another log key", data, stranger.policy()
    yield "another origin", data, World("one", "log.example/other").policy()
    yield "another chain", data, POLICY.replace("domain 31337", "domain 1")
    yield "both keys", data, POLICY + f"log {new}\n"
    yield "the new key only", data, POLICY.replace(old, new)
    yield "the old key retired from the start", data, POLICY + f"retired {old} 0\n"
    yield "the old key retired at the rotation", data, POLICY + f"retired {old} 3\n"
    yield "the old key retired after the rotation", data, POLICY + f"retired {old} 4\n"
    yield "the new key retired", data, POLICY + f"retired {new} 4\n"
    yield "the new key retired later", data, POLICY + f"retired {new} 7\n"
    yield "the record key pinned", data, POLICY + f"record-key {second}\n"
    yield "another record key pinned", data, POLICY + f"record-key {first}\n"
    yield "the record key retired", data, POLICY + f"retired {second} 4\n"
    yield "the record key retired later", data, POLICY + f"retired {second} 5\n"
    yield "an unmet quorum", data, VECTORS["witnessed_policy"]
    witnessed = VECTORS["receipts"]["witnessed"]
    yield "a met quorum", witnessed.encode(), VECTORS["witnessed_policy"]
    line = witnessed.index("witness.example/w1 ") + 40
    broken = witnessed[:line] + ("A" if witnessed[line] != "A" else "B") + witnessed[line + 1 :]
    yield "a false cosignature", broken.encode(), VECTORS["witnessed_policy"]
    yield "a false cosignature that nobody asked for", broken.encode(), POLICY


def moved(record: UsageRecord, by: int) -> UsageRecord:
    """More charge and less release, or the other way."""
    charge, released = record.charge_nano + by, record.released_nano - by
    return replace(record, charge_nano=Nano(charge), released_nano=Nano(released))


def held_more(record: UsageRecord) -> UsageRecord:
    held, released = record.held_nano + 1, record.released_nano + 1
    return replace(record, held_nano=Nano(held), released_nano=Nano(released))


def cheaper_input(record: UsageRecord) -> UsageRecord:
    return moved(replace(record, input_rate_nano=Nano(0)), -2880)


def sums_of_less(header: BatchHeader) -> BatchHeader:
    (one,) = header.sums
    less = replace(one, charge=Nano(one.charge - 1), released=Nano(one.released + 1))
    return replace(header, sums=(less,))


EDITS = {
    "charge above tokens": Edits(record=lambda r: moved(r, 1)),
    "held above the maximum": Edits(record=held_more),
    "another rate": Edits(record=cheaper_input),
    "another payer": Edits(record=lambda r: replace(r, payer=Address("0x" + "11" * 20))),
    "another wallet accepted": Edits(accepted_by="mallory"),
    "another key recorded": Edits(recorded_by="mallory"),
    "another key quoted": Edits(quoted_by="mallory"),
    "more output than quoted": Edits(quote=lambda q: replace(q, max_output_tokens=3)),
    "fewer tokens by the agent": Edits(
        statement=lambda s: replace(s, output_tokens=5),
        record=lambda r: moved(replace(r, output_tokens=21), 2880),
    ),
    "statement of another job": Edits(statement=lambda s: replace(s, job=s.lease)),
    "under a delegation": Edits(authorization=lambda a: replace(a, delegation=b"\1" * 32)),
    "a lower maximum": Edits(authorization=lambda a: replace(a, max_charge_nano=Nano(9_000))),
    "payerSeq 0": Edits(record=lambda r: replace(r, payer_seq=0)),
    "due before it ended": Edits(record=lambda r: replace(r, include_by=r.completed_at - 1)),
    "version 2": Edits(record=lambda r: replace(r, version=2)),
    "another statement": Edits(record=lambda r: replace(r, supplier_statement=b"\1" * 32)),
    "another answer": Edits(record=lambda r: replace(r, response_commit=b"\1" * 32)),
}
HEADERS: dict[str, Callable[[BatchHeader], BatchHeader]] = {
    "times without the record": lambda h: replace(h, first_at=h.last_at + 1, last_at=h.last_at + 1),
    "another key id": lambda h: replace(h, key_id="00000000"),
    "number of a later batch": lambda h: replace(h, number=1),
    "sums of others": sums_of_less,
    "another count": lambda h: replace(h, end=h.end + 2),
    "no sums": lambda h: replace(h, sums=()),
}
STEPS = {
    "charge above tokens": "arithmetic",
    "held above the maximum": "quote",
    "another rate": "quote",
    "another payer": "quote",
    "another wallet accepted": "acceptance-signature",
    "another key recorded": "record-signature",
    "another key quoted": "quote-signature",
    "more output than quoted": "quote",
    "fewer tokens by the agent": "statement",
    "statement of another job": "statement",
    "under a delegation": "acceptance",
    "a lower maximum": "acceptance",
    "payerSeq 0": "arithmetic",
    "due before it ended": "arithmetic",
    "version 2": "record",
    "another statement": "statement",
    "another answer": "statement",
    "times without the record": "header",
    "another key id": "header",
    "number of a later batch": "header",
    "sums of others": "header",
    "another count": "batch",
    "no sums": "batch",
}
"""Where what was signed dishonestly is found."""


def worlds() -> Iterator[Case]:
    """What a dishonest gateway, wallet or agent could sign."""
    for name, edit in EDITS.items():
        world = World()
        job = world.job(edits=edit)
        world.seal()
        yield name, world.receipt(job).encode(), world.policy()
    for name, change in HEADERS.items():
        world = World()
        job = world.job()
        world.seal(change)
        yield name, world.receipt(job).encode(), world.policy()


def swaps() -> Iterator[Case]:
    """Parts of two good receipts in one, and entries that are not what they are used as."""
    world = small_world()
    good, policy = world.receipt(world.jobs[6]), world.policy()
    other, early = world.receipt(world.jobs[0]), world.receipt(world.jobs[0], size=2)
    yield "record of another", replace(good, record=other.record).encode(), policy
    yield (
        "signature of another",
        replace(good, record=replace(good.record, signature=other.record.signature)).encode(),
        policy,
    )
    yield "quote of another", replace(good, quote=other.quote).encode(), policy
    yield "acceptance of another", replace(good, acceptance=other.acceptance).encode(), policy
    yield "statement of another", replace(good, supplier=other.supplier).encode(), policy
    yield "opening of another", replace(good, opening=other.opening).encode(), policy
    yield "batch of another", replace(good, batch=other.batch).encode(), policy
    yield "log proof of another", replace(good, log_proof=other.log_proof).encode(), policy
    yield "an older checkpoint", replace(good, log_proof=early.log_proof).encode(), policy
    yield "no key entries", replace(good, keys=()).encode(), policy
    yield "without the rotation", replace(good, keys=good.keys[:1]).encode(), policy
    yield "without the first table", replace(good, keys=good.keys[1:]).encode(), policy
    yield "key entries out of order", replace(good, keys=good.keys[::-1]).encode(), policy
    first = KeyEntry(world.entries[0][1], world.log_proof(3))
    yield "a table at another place", replace(good, keys=(first,)).encode(), policy
    pending = replace(good, batch=None, log_proof=None)
    yield "pending with keys", pending.encode(), policy
    yield "pending without keys", replace(pending, keys=()).encode(), policy
    forked = World()
    job = forked.job()
    forked.seal()
    forked.entries[1] = (EntryKind.EXPORT_MANIFEST, forked.entries[1][1])
    yield "a header logged as another kind", forked.receipt(job).encode(), forked.policy()
    grown = small_world()
    kept = grown.receipt(grown.jobs[6])
    grown.append(EntryKind.EXPORT_MANIFEST, b"more\n")
    assert kept.log_proof is not None
    late = replace(kept.log_proof, checkpoint=grown.checkpoint())
    yield "a proof for another size", replace(kept, log_proof=late).encode(), grown.policy()
    assert LogIndex(4) == late.index
    cosigned_receipt = world.receipt(world.jobs[6], checkpoint=cosigned(world.checkpoint()))
    yield "a line more", cosigned_receipt.encode(), policy
