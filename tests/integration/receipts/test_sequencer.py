"""Signed records go into exactly one batch each, in their wallet's order, for good."""

import asyncio
from contextlib import suppress
from itertools import pairwise
from uuid import UUID

import pytest

from app.kit.errors import DatabaseConflict
from app.receipts.appending import LogWriter
from app.receipts.batch import batch_proof
from app.receipts.errors import LogDamaged
from app.receipts.log_repository import LogRepository
from ledger.checkpoint import LogProof, open_checkpoint
from ledger.hashing import sha256
from ledger.log_entry import NO_HEADER, BatchHeader, EntryKind, entry_leaf_hash
from ledger.merkle import (
    BatchIndex,
    LogIndex,
    TreeHead,
    verify_consistency,
    verify_inclusion,
)
from ledger.money import MAX_NANO
from tests.integration.books import Order, wallet
from tests.integration.receipts.conftest import ORIGIN, Archive

BUYER, OTHER = wallet(1), wallet(2)


async def published(archive: Archive) -> list[BatchHeader]:
    """Return the headers in the published log, in order."""
    size = (await archive.reader.checkpoint()).size
    entries = [await archive.reader.entry(index) for index in range(size)]
    return [BatchHeader.parse(e.entry) for e in entries if e.kind is EntryKind.BATCH_HEADER]


def sealed(archive: Archive) -> list[UUID]:
    """Return the sealed records in the order of the sequence."""
    rows = archive.books.rows(
        "SELECT record_id FROM offpeak.usage_record WHERE leaf_index >= 0 ORDER BY leaf_index"
    )
    return [row.record_id for row in rows]


def written(archive: Archive) -> dict[str, list[bytes]]:
    """Return the bytes that are stored of headers, entries and checkpoints, in order."""
    queries = {
        "headers": "SELECT header AS stored FROM offpeak.receipt_batch ORDER BY number",
        "entries": "SELECT entry AS stored FROM offpeak.log_entry ORDER BY index",
        "notes": "SELECT note AS stored FROM offpeak.log_checkpoint ORDER BY size",
    }
    return {
        name: [bytes(row.stored) for row in archive.books.rows(query)]
        for name, query in queries.items()
    }


async def test_a_new_log_begins_with_its_keys(archive: Archive) -> None:
    await archive.sequencer().run_once()
    checkpoint = await archive.reader.checkpoint()
    key = archive.terms.signer.verifier
    shown, signers = open_checkpoint(checkpoint.note, origin=ORIGIN, keys=[key])
    assert (shown.head.size, signers) == (1, (key,))
    assert (await archive.followed_keys()).record_keys(LogIndex(1)) == (archive.terms.record_key,)


async def test_records_are_sealed_in_their_wallets_order_failed_ones_too(archive: Archive) -> None:
    first = archive.end_jobs(BUYER, 3)
    failed = archive.end_jobs(OTHER, 2, charge=0)
    last = archive.end_jobs(BUYER, 2)
    await archive.sign()
    await archive.sequencer().run_once()
    order = sealed(archive)
    assert sorted(order) == sorted([*first, *failed, *last])
    assert [each for each in order if each in {*first, *last}] == [*first, *last]
    [header] = await published(archive)
    [sums] = header.sums
    assert (header.number, header.start, header.end) == (0, 0, 7)
    assert (sums.charge, sums.held, sums.released) == (35, 70, 35)
    assert header.previous_header == NO_HEADER


async def test_batches_follow_one_another_without_a_gap(archive: Archive) -> None:
    for _ in range(3):
        await archive.seal(BUYER, 3)
    headers = await published(archive)
    assert [(each.number, each.start, each.end) for each in headers] == [
        (0, 0, 3),
        (1, 3, 6),
        (2, 6, 9),
    ]
    for before, after in pairwise(headers):
        assert after.previous_header == sha256(before.encode())


async def test_a_backlog_larger_than_a_batch_is_sealed_in_one_round(archive: Archive) -> None:
    archive.end_jobs(BUYER, 8)
    archive.end_jobs(OTHER, 3)
    await archive.sign()
    done = await archive.sequencer(limit=4).run_once()
    assert done.sealed == 11
    assert [each.count for each in await published(archive)] == [4, 4, 3]


async def test_an_unsigned_record_holds_back_its_wallets_later_ones_only(archive: Archive) -> None:
    first, second, third = archive.end_jobs(BUYER, 3)
    [theirs] = archive.end_jobs(OTHER)
    await archive.sign()
    archive.tamper(
        "UPDATE offpeak.usage_record SET signature = NULL, key_id = NULL WHERE record_id = %s",
        second,
    )
    await archive.sequencer().run_once()
    assert set(sealed(archive)) == {first, theirs}
    await archive.sign()
    await archive.sequencer().run_once()
    assert sealed(archive)[2:] == [second, third]


async def test_a_record_whose_signature_was_altered_is_never_sealed(archive: Archive) -> None:
    bad, _later = archive.end_jobs(BUYER, 2)
    [theirs] = archive.end_jobs(OTHER)
    await archive.sign()
    archive.tamper(
        "UPDATE offpeak.usage_record SET signature = set_byte(signature, 5,"
        " get_byte(signature, 5) # 1) WHERE record_id = %s",
        bad,
    )
    await archive.sequencer().run_once()
    assert sealed(archive) == [theirs]


async def test_a_second_round_without_new_records_changes_nothing(archive: Archive) -> None:
    await archive.seal(BUYER, 2)
    before = await archive.reader.checkpoint()
    again = await archive.sequencer().run_once()
    assert (again.sealed, again.logged, again.checkpoints) == (0, 0, 0)
    assert await archive.reader.checkpoint() == before


async def test_many_sequencers_at_once_make_one_sequence(archive: Archive) -> None:
    async def run() -> None:
        with suppress(DatabaseConflict):
            await archive.sequencer(limit=3).run_once()

    for _ in range(3):
        archive.end_jobs(BUYER, 4)
        archive.end_jobs(OTHER, 4)
        await archive.sign()
        await asyncio.gather(*(run() for _ in range(4)))
    await archive.sequencer().run_once()
    assert len(sealed(archive)) == 24
    headers = await published(archive)
    assert [each.start for each in headers[1:]] == [each.end for each in headers[:-1]]
    assert sum(each.count for each in headers) == 24


@pytest.mark.parametrize("step", ["seal", "append", "store_checkpoint"])
async def test_a_crash_at_any_step_resumes_to_the_same_bytes(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The step commits, and the process dies before it hears of it."""
    await archive.sequencer().run_once()
    archive.end_jobs(BUYER, 5)
    await archive.sign()
    real = getattr(LogRepository, step)

    class Killed(BaseException):
        pass

    async def done_then_killed(self: LogRepository, *given: object, **named: object) -> None:
        await real(self, *given, **named)
        await self._tx.commit()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(LogRepository, step, done_then_killed)
        with pytest.raises(Killed):
            await archive.sequencer(limit=2).run_once()
    before = written(archive)
    await archive.sequencer(limit=2).run_once()
    after = written(archive)
    assert before != after
    assert all(after[name][: len(kept)] == kept for name, kept in before.items())
    assert len(sealed(archive)) == 5
    headers = await published(archive)
    assert [each.count for each in headers] == [2, 2, 1]
    assert [len(found) for found in after.values()] == [3, 4, 4]


async def test_every_size_has_a_checkpoint_and_each_follows_from_every_earlier(
    archive: Archive,
) -> None:
    for _ in range(6):
        await archive.seal(BUYER)
    size = (await archive.reader.checkpoint()).size
    heads = []
    for each in range(1, size + 1):
        row = await archive.reader.checkpoint(each)
        heads.append(TreeHead(row.size, row.root))
    for old in heads:
        for new in heads[old.size - 1 :]:
            proof = await archive.reader.consistency(old.size, new.size)
            verify_consistency(old, new, proof)


async def test_every_entry_is_proved_at_every_later_checkpoint(archive: Archive) -> None:
    for _ in range(4):
        await archive.seal(BUYER, 2)
    size = (await archive.reader.checkpoint()).size
    for index in range(size):
        entry = await archive.reader.entry(index)
        for at in range(index + 1, size + 1):
            proof = await archive.reader.proof(LogIndex(index), at)
            shown, _ = open_checkpoint(
                proof.checkpoint, origin=ORIGIN, keys=[archive.terms.signer.verifier]
            )
            LogProof.parse(proof.text()).verify(
                entry_leaf_hash(entry.kind, entry.entry), shown.head
            )


async def test_every_record_is_proved_in_a_batch_of_many_chunks(archive: Archive) -> None:
    archive.end_jobs(BUYER, 600)
    await archive.sign()
    await archive.sequencer().run_once()
    [header] = await published(archive)
    async with archive.database.transaction() as tx:
        repository = LogRepository(tx)
        batch = await repository.batch(0)
        assert batch is not None
        leaves = [each for _, each in await repository.leaves(0, 600)]
    for index in (0, 1, 255, 256, 511, 512, 599):
        start = index // 256 * 256
        chunk = leaves[start : start + 256]
        proof = batch_proof(BatchIndex(index), chunk=chunk, roots=batch.chunk_roots)
        verify_inclusion(leaves[index], index, size=600, proof=proof, root=header.records_root)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE offpeak.usage_record SET charge = charge - 1, released = released + 1", "records"),
        ("UPDATE offpeak.usage_record SET salt = sha256(salt)", "records"),
        ("UPDATE offpeak.usage_record SET leaf_hash = sha256(leaf_hash)", "records"),
        ("UPDATE offpeak.log_entry SET entry = entry || ' ' WHERE kind = 'batch-header'", "entry"),
        ("UPDATE offpeak.log_node SET hash = sha256(hash) WHERE level = 0 AND index = 1", "grow"),
        ("UPDATE offpeak.log_node SET hash = sha256(hash) WHERE level = 1", "grow"),
        ("UPDATE offpeak.log_checkpoint SET root = sha256(root)", "grow"),
    ],
)
async def test_what_was_altered_after_sealing_is_never_published(
    archive: Archive, damage: str, what: str
) -> None:
    sequencer = archive.sequencer()
    await sequencer.run_once()
    archive.end_jobs(BUYER, 3)
    await archive.sign()
    await sequencer.seal_once()
    await sequencer.log_headers()
    archive.tamper(damage)
    with pytest.raises(LogDamaged, match=what):
        await sequencer.sign_checkpoints()
    assert (await archive.reader.checkpoint()).size == 1


async def test_an_entry_is_logged_once_however_often_and_at_once(archive: Archive) -> None:
    await archive.sequencer().run_once()
    writer = LogWriter(archive.database)
    entries = [b"one", b"two", b"one", b"three", b"two", b"one"]
    logged = await asyncio.gather(
        *(writer.append(EntryKind.EXPORT_MANIFEST, entry) for entry in entries)
    )
    places = {entry: each.index for entry, each in zip(entries, logged, strict=True)}
    assert sorted(places.values()) == [1, 2, 3]
    assert sum(each.is_new for each in logged) == 3


async def test_an_entry_that_is_logged_while_it_is_being_logged_is_found(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archive.sequencer().run_once()
    writer = LogWriter(archive.database)
    real = LogRepository.size

    async def late(repository: LogRepository) -> int:
        monkeypatch.setattr(LogRepository, "size", real)
        await writer.append(EntryKind.EXPORT_MANIFEST, b"one")
        return await real(repository)

    monkeypatch.setattr(LogRepository, "size", late)
    again = await writer.append(EntryKind.EXPORT_MANIFEST, b"one")
    assert (again.index, again.is_new) == (1, False)


async def test_a_proof_that_does_not_hold_is_not_given_out(archive: Archive) -> None:
    await archive.seal(BUYER)
    archive.tamper("UPDATE offpeak.log_node SET hash = sha256(hash) WHERE level = 0 AND index = 0")
    with pytest.raises(LogDamaged):
        await archive.reader.proof(LogIndex(1))


async def test_records_whose_sums_no_header_could_say_are_sealed_in_further_batches(
    archive: Archive,
) -> None:
    most = 6 * 10**18
    archive.books.fund(BUYER, most)
    for _ in range(3):  # held, given back, and held again
        order = Order(
            payer=BUYER,
            amount=most,
            per_request=7,
            candidates=(archive.seller.deployment_id,),
        )
        [outcome] = archive.books.accept([order])
        assert archive.books.end(outcome.job_id) == "ok"
    archive.end_jobs(OTHER, 2)
    await archive.sign()
    await archive.sequencer().run_once()
    headers = await published(archive)
    assert sum(each.count for each in headers) == len(sealed(archive)) == 5
    assert all(each.held <= MAX_NANO for header in headers for each in header.sums)


async def test_an_entry_that_another_logs_between_look_and_write_is_a_conflict_and_then_found(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await archive.seal(BUYER)
    entry, look = b"TEST entry", LogRepository.index_of
    other = LogWriter(archive.database)

    async def overtaken(self: LogRepository, leaf_hash: bytes) -> LogIndex | None:
        found = await look(self, leaf_hash)
        monkeypatch.setattr(LogRepository, "index_of", look)
        assert (await other.append(EntryKind.EXPORT_MANIFEST, entry)).is_new
        return found

    monkeypatch.setattr(LogRepository, "index_of", overtaken)
    logged = await LogWriter(archive.database).append(EntryKind.EXPORT_MANIFEST, entry)
    assert (logged.index, logged.is_new) == (2, False)
