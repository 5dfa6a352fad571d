"""A receipt log in memory, with TEST keys: jobs, batches, rotations and their receipts.

Made with `ledger` only, so that a receipt is right by the formats and not by how a gateway makes
it. Everything follows from names: two worlds of one name make the same bytes. `Edits` let a world
sign what no honest gateway would.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ledger.checkpoint import Checkpoint, LogProof
from ledger.commitment import request_digest
from ledger.encoding import checksum_address, uuid_bytes32
from ledger.hashing import sha256
from ledger.log_entry import (
    NO_HEADER,
    BatchHeader,
    EntryKind,
    add_up,
    entry_leaf_hash,
    sums_of,
)
from ledger.log_keys import KeyRole, KeyTable, LogKey
from ledger.merkle import (
    BatchIndex,
    LogIndex,
    Node,
    Tree,
    TreeHead,
    consistency_ranges,
    range_hash,
)
from ledger.money import Nano
from ledger.note import NoteSigner
from ledger.onchain import Anchor
from ledger.receipt import (
    Acceptance,
    BatchPart,
    KeyEntry,
    Opening,
    Receipt,
    SignedMessage,
    SupplierPart,
)
from ledger.signing import SigningKey
from ledger.usage import NO_RECORD, Outcome
from tests.receipt_documents import (
    AUTHORIZATIONS,
    CHAIN_ID,
    INPUT_RATE,
    INPUT_TOKENS,
    MAX_CHARGE,
    MAX_OUTPUT_TOKENS,
    MODEL,
    NO_EDITS,
    NOW,
    OUTPUT_RATE,
    PER_REQUEST,
    RECEIPT_ANCHOR,
    RECORDS,
    REVISION,
    TOKEN,
    TREASURY,
    Edits,
    Job,
    Place,
    agent_public_key,
    authorization_for,
    job_id,
    quote_for,
    record_for,
    request_for,
    secret,
    statement_for,
)

__all__ = [
    "AUTHORIZATIONS",
    "CHAIN_ID",
    "INPUT_RATE",
    "INPUT_TOKENS",
    "MAX_CHARGE",
    "MAX_OUTPUT_TOKENS",
    "MODEL",
    "NOW",
    "NO_EDITS",
    "OUTPUT_RATE",
    "PER_REQUEST",
    "RECEIPT_ANCHOR",
    "RECORDS",
    "REVISION",
    "TOKEN",
    "TREASURY",
    "Batch",
    "Edits",
    "Job",
    "World",
    "secret",
    "small_world",
]


@dataclass(frozen=True, slots=True)
class Batch:
    """A sealed batch and its place in the log."""

    jobs: tuple[Job, ...]
    tree: Tree
    header: bytes
    index: LogIndex


class World:
    """One gateway's log. Wallets are names; entry 0, the genesis rotation, is there at once."""

    def __init__(self, name: str = "one", origin: str = "log.example/offpeak") -> None:
        self.name = name
        self.origin = origin
        self.generation = 0
        self.entries: list[tuple[EntryKind, bytes]] = []
        self.batches: list[Batch] = []
        self.waiting: list[Job] = []
        self.jobs: list[Job] = []
        keys = (
            LogKey(role=KeyRole.CHECKPOINT, key=str(self.signer().verifier), valid_from=1),
            LogKey(role=KeyRole.RECORD, key=self.record_key().address, valid_from=1),
        )
        self.table = KeyTable(origin, keys)
        self.append(EntryKind.KEY_ROTATION, self.table.sign([self.signer()]))

    # Keys

    def signer(self, generation: int | None = None) -> NoteSigner:
        """The checkpoint key of a generation, of the present one by default."""
        number = self.generation if generation is None else generation
        return NoteSigner(self.origin, secret(f"{self.name} checkpoint {number}"))

    def record_key(self, generation: int | None = None) -> SigningKey:
        """The key of records and quotes of a generation, of the present one by default."""
        number = self.generation if generation is None else generation
        return SigningKey(secret(f"{self.name} record {number}"))

    def wallet(self, name: str) -> SigningKey:
        """The key of a wallet."""
        return SigningKey(secret(f"{self.name} wallet {name}"))

    def rotate(self, *, grace: int = 0) -> LogIndex:
        """Log a rotation to keys of the next generation.

        The old record key counts for `grace` more entries after it.
        """
        index = LogIndex(len(self.entries))
        old = self.signer()
        self.generation += 1
        until = {KeyRole.CHECKPOINT: index + 1, KeyRole.RECORD: index + 1 + grace}
        kept = [
            replace(each, valid_until=until[each.role]) if each.valid_until is None else each
            for each in self.table.keys
        ]
        verifier, address = str(self.signer().verifier), self.record_key().address
        new = [
            LogKey(role=KeyRole.CHECKPOINT, key=verifier, valid_from=index + 1),
            LogKey(role=KeyRole.RECORD, key=address, valid_from=index + 1),
        ]
        self.table = KeyTable(self.origin, (*kept, *new))
        return self.append(EntryKind.KEY_ROTATION, self.table.sign([old, self.signer()]))

    # Jobs

    def job(
        self, wallet: str = "alice", outcome: Outcome = Outcome.COMPLETED, edits: Edits = NO_EDITS
    ) -> Job:
        """A finished job of this wallet, signed and waiting for a batch."""
        number = len(self.jobs)
        salt, request = secret(f"{self.name} salt {number}"), request_for(number)
        digest = request_digest(salt, request)
        quote = edits.quote(quote_for(number, self.wallet(wallet).address, digest))
        acceptance = edits.authorization(authorization_for(number, quote))
        billed = outcome in {Outcome.COMPLETED, Outcome.CANCELLED}
        answer = (f"Billing {number}", "stop") if billed else None
        supplier = edits.statement(statement_for(number, digest, answer)) if answer else None
        place = self._place(wallet)
        record = edits.record(record_for(place, outcome, (quote, acceptance, supplier), answer))
        agent = SupplierPart(
            supplier.canonical().decode(),
            supplier.sign(secret("agent")),
            agent_public_key(),
        ) if supplier is not None else None  # fmt: skip
        job = Job(
            wallet=wallet,
            request=request,
            request_salt=salt,
            answer=answer,
            quote=quote,
            acceptance=acceptance,
            supplier=agent,
            record=record,
            quote_signature=self._sign(quote.digest(AUTHORIZATIONS), edits.quoted_by),
            acceptance_signature=self.wallet(edits.accepted_by or wallet).sign(
                acceptance.digest(AUTHORIZATIONS)
            ),
            record_signature=self._sign(record.digest(RECORDS), edits.recorded_by),
        )
        return self._wait(job)

    def correct(self, original: Job, *, charge: int, edits: Edits = NO_EDITS) -> Job:
        """A correction of a job's record to a smaller charge, signed and waiting for a batch."""
        was, number = original.record, len(self.jobs)
        place = self._place(original.wallet)
        record = replace(
            was,
            record_id=uuid_bytes32(job_id(0xC000 + number)),
            payer_seq=place.seq,
            prev_payer_record=place.previous,
            held_nano=was.charge_nano,
            charge_nano=Nano(charge),
            released_nano=Nano(was.charge_nano - charge),
            outcome=Outcome.CORRECTION,
            corrects_record=was.record_id,
            completed_at=NOW + 60 + number,
            include_by=NOW + 60 + number + 86_400,
        )
        record = edits.record(record)
        signature = self._sign(record.digest(RECORDS), edits.recorded_by)
        return self._wait(replace(original, record=record, record_signature=signature))

    def _wait(self, job: Job) -> Job:
        self.jobs.append(job)
        self.waiting.append(job)
        return job

    def _sign(self, digest: bytes, name: str | None) -> bytes:
        return (self.record_key() if name is None else SigningKey(secret(name))).sign(digest)

    def _place(self, wallet: str) -> Place:
        number = len(self.jobs)
        before = [job.record for job in self.jobs if job.wallet == wallet]
        return Place(
            number=number,
            payer=self.wallet(wallet).address,
            seq=len(before) + 1,
            previous=before[-1].record_id if before else NO_RECORD,
            salt=secret(f"{self.name} record salt {number}"),
        )

    # The log

    def append(self, kind: EntryKind, entry: bytes) -> LogIndex:
        """Log an entry and return its place."""
        self.entries.append((kind, entry))
        return LogIndex(len(self.entries) - 1)

    def seal(self, edit: Callable[[BatchHeader], BatchHeader] | None = None) -> Batch:
        """Seal all waiting records into a batch and log its header."""
        jobs, self.waiting = tuple(self.waiting), []
        tree = Tree(job.leaf for job in jobs)
        times = [job.record.completed_at for job in jobs]
        start = sum(len(batch.jobs) for batch in self.batches)
        header = BatchHeader(
            number=len(self.batches),
            start=start,
            end=start + len(jobs),
            records_root=tree.root,
            sums=add_up(sums_of(job.record) for job in jobs),
            first_at=min(times),
            last_at=max(times),
            key_id=self.signer().verifier.id.hex(),
            previous_header=sha256(self.batches[-1].header) if self.batches else NO_HEADER,
        )
        encoded = (header if edit is None else edit(header)).encode()
        batch = Batch(jobs, tree, encoded, self.append(EntryKind.BATCH_HEADER, encoded))
        self.batches.append(batch)
        return batch

    @property
    def leaves(self) -> list[bytes]:
        """The leaf hashes of the whole log."""
        return [entry_leaf_hash(kind, entry) for kind, entry in self.entries]

    def head(self, size: int | None = None) -> TreeHead:
        """The log at a size, at its present one by default."""
        number = len(self.entries) if size is None else size
        return TreeHead(number, Tree(self.leaves[:number]).root)

    def checkpoint(self, size: int | None = None, witnesses: Sequence[NoteSigner] = ()) -> bytes:
        """The checkpoint of a size, signed by the key that counts at it."""
        head = self.head(size)
        signers = [self.signer(number) for number in range(self.generation + 1)]
        key = self.table.checkpoint_key(head.size)
        signer = next(each for each in signers if each.verifier == key)
        return Checkpoint(self.origin, head).sign([signer, *witnesses])

    def consistency(self, old: int, new: int) -> tuple[bytes, ...]:
        """The proof that the log of `old` entries is the start of that of `new`."""

        def node(place: Node) -> bytes:
            level, index = place
            return Tree(self.leaves[index << level : (index + 1) << level]).root

        return tuple(range_hash(each, node) for each in consistency_ranges(old, new))

    def log_proof(
        self, index: int, size: int | None = None, checkpoint: bytes | None = None
    ) -> LogProof:
        """The proof of an entry for the checkpoint of a size."""
        number = len(self.entries) if size is None else size
        note = self.checkpoint(number) if checkpoint is None else checkpoint
        return LogProof(LogIndex(index), Tree(self.leaves[:number]).proof(index), note)

    # What a buyer gets

    def receipt(
        self, job: Job, size: int | None = None, checkpoint: bytes | None = None
    ) -> Receipt:
        """The receipt of a job for the checkpoint of a size; pending when it is in no batch."""
        batch = next((each for each in self.batches if job in each.jobs), None)
        number = len(self.entries) if size is None else size
        rotations = [
            place
            for place, (kind, _) in enumerate(self.entries[:number])
            if kind is EntryKind.KEY_ROTATION
        ]
        keys = tuple(
            KeyEntry(self.entries[place][1], self.log_proof(place, number, checkpoint))
            for place in rotations
        )
        place = batch.jobs.index(job) if batch is not None else 0
        content, finish = job.answer or (None, None)
        return Receipt(
            record=_signed(job.record.canonical(), job.record_signature),
            quote=_signed(job.quote.canonical(), job.quote_signature),
            acceptance=Acceptance(job.acceptance.canonical().decode(), job.acceptance_signature),
            supplier=job.supplier,
            batch=None
            if batch is None
            else BatchPart(batch.header, BatchIndex(place), batch.tree.proof(place)),
            log_proof=None if batch is None else self.log_proof(batch.index, number, checkpoint),
            keys=keys,
            opening=Opening(job.request.decode(), job.request_salt, content, finish),
        )

    def anchor(self, size: int | None = None) -> Anchor:
        """What a receipt says of the checkpoint of a size once it is anchored; blocks made up."""
        head = self.head(size)
        return Anchor(
            chain_id=CHAIN_ID,
            contract=RECEIPT_ANCHOR,
            size=head.size,
            root=head.root,
            tx_hash=secret(f"{self.name} anchoring {head.size}"),
            block_number=1_000 + head.size,
            block_hash=secret(f"{self.name} block {head.size}"),
            log_index=0,
        )

    def policy(self, *more: str) -> str:
        """A policy that trusts the first checkpoint key, with more lines where given."""
        anchor, treasury = checksum_address(RECEIPT_ANCHOR), checksum_address(TREASURY)
        lines = [
            f"log {self.signer(0).verifier}",
            f"domain {CHAIN_ID} {anchor} {treasury}",
            *more,
        ]
        return "\n".join(lines) + "\n"


def small_world(name: str = "one") -> World:
    """Two wallets, three batches, a failed record, a correction, a rotation, one job pending."""
    world = World(name)
    first = world.job("alice")
    world.job("bob")
    world.job("alice", Outcome.FAILED)
    world.seal()
    world.job("bob", Outcome.CANCELLED)
    world.correct(first, charge=first.record.charge_nano - 1_000)
    world.seal()
    world.rotate()
    for _ in range(5):
        world.job("alice")
    world.job("bob")
    world.seal()
    world.job("alice")
    return world


def _signed(message: bytes, signature: bytes) -> SignedMessage:
    return SignedMessage(message.decode(), signature)
