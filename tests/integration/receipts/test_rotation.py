"""Keys change by entries of the log; what was signed before stays good."""

from dataclasses import replace

import pytest

from app.receipts import log as log_module
from app.receipts import rotation as rotation_module
from app.receipts import sequencer as sequencer_module
from app.receipts.errors import CheckpointKeyRetired, RotationRefused
from app.receipts.rotation import Rotation, rotate
from ledger.checkpoint import open_checkpoint
from ledger.encoding import Address
from ledger.merkle import LogIndex
from ledger.note import NoteSigner
from ledger.signing import SigningKey
from tests.integration.books import wallet
from tests.integration.receipts.conftest import ORIGIN, Archive, seed, terms

BUYER, OTHER = wallet(1), wallet(2)
SECOND = NoteSigner(ORIGIN, seed("second log"))
NEXT_RECORD_KEY = SigningKey(seed("second record")).address


async def rotated(archive: Archive, rotation: Rotation) -> LogIndex:
    return await rotate(archive.database, archive.sequencer(), rotation)


async def test_checkpoints_are_signed_by_the_new_key_from_the_rotation_on(archive: Archive) -> None:
    await archive.seal(BUYER)
    index = await rotated(archive, Rotation(checkpoint_key=SECOND))
    archive.terms = replace(archive.terms, signer=SECOND)
    await archive.seal(BUYER)
    first = terms().signer.verifier
    for size in range(1, (await archive.reader.checkpoint()).size + 1):
        note = (await archive.reader.checkpoint(size)).note
        signer = first if size <= index else SECOND.verifier
        open_checkpoint(note, origin=ORIGIN, keys=[signer])
    assert (await archive.followed_keys()).checkpoint_key(index + 1) == SECOND.verifier


async def test_a_worker_with_the_old_key_signs_nothing_more_and_loses_nothing(
    archive: Archive,
) -> None:
    await archive.seal(BUYER)
    await rotated(archive, Rotation(checkpoint_key=SECOND))
    size = (await archive.reader.checkpoint()).size
    archive.end_jobs(BUYER, 2)
    await archive.sign()
    with pytest.raises(CheckpointKeyRetired):
        await archive.sequencer().run_once()
    assert (await archive.reader.checkpoint()).size == size
    archive.terms = replace(archive.terms, signer=SECOND)
    await archive.sequencer().run_once()
    assert archive.books.one("SELECT count(*) AS n FROM offpeak.usage_record").n == 3
    assert archive.books.one('SELECT max("end") AS n FROM offpeak.receipt_batch').n == 3


async def test_records_of_a_key_that_was_never_introduced_wait(archive: Archive) -> None:
    await archive.seal(BUYER)
    archive.record_key = "second record"
    archive.end_jobs(OTHER)
    await archive.sign()
    assert (await archive.sequencer().run_once()).sealed == 0
    await rotated(archive, Rotation(record_key=NEXT_RECORD_KEY))
    assert (await archive.sequencer().run_once()).sealed == 1


async def test_a_record_key_is_retired_when_its_records_are_sealed_and_not_before(
    archive: Archive,
) -> None:
    await archive.seal(BUYER)
    old = archive.terms.record_key
    with pytest.raises(RotationRefused, match="no record key would be left"):
        await rotated(archive, Rotation(retired_record_key=old))
    archive.end_jobs(BUYER, 2)
    await archive.sign()
    await rotated(archive, Rotation(record_key=NEXT_RECORD_KEY, retired_record_key=old))
    assert archive.books.one('SELECT max("end") AS n FROM offpeak.receipt_batch').n == 3
    archive.end_jobs(BUYER)
    await archive.sign()
    assert (await archive.sequencer().run_once()).sealed == 0


@pytest.mark.parametrize(
    ("rotation", "why"),
    [
        (Rotation(), "name a key"),
        (Rotation(checkpoint_key=terms().signer), "is or was"),
        (Rotation(record_key=terms().record_key), "is or was"),
        (Rotation(retired_record_key=Address("0x" + "99" * 20)), "no record key in force"),
    ],
)
async def test_a_rotation_that_changes_nothing_or_repeats_a_key_is_refused(
    archive: Archive, rotation: Rotation, why: str
) -> None:
    await archive.seal(BUYER)
    size = (await archive.reader.checkpoint()).size
    with pytest.raises(RotationRefused, match=why):
        await rotated(archive, rotation)
    assert (await archive.reader.checkpoint()).size == size


async def test_only_the_key_in_force_can_rotate(archive: Archive) -> None:
    await archive.seal(BUYER)
    await rotated(archive, Rotation(checkpoint_key=SECOND))
    with pytest.raises(CheckpointKeyRetired):
        await rotated(archive, Rotation(checkpoint_key=NoteSigner(ORIGIN, seed("third log"))))


async def test_a_rotation_that_no_receipt_could_carry_is_refused_before_it_is_logged(
    archive: Archive,
) -> None:
    await archive.seal(BUYER)
    names = {SigningKey(seed(f"record {n}")).address: f"record {n}" for n in range(70)}
    record_key = archive.terms.record_key
    refused = None
    for added in names:
        try:
            await rotated(archive, Rotation(record_key=added, retired_record_key=record_key))
        except RotationRefused as error:
            refused = error
            break
        record_key = added
    assert "64" in str(refused)
    archive.record_key = names[record_key]
    [last] = await archive.seal(OTHER)
    assert await archive.reader.keys()
    assert archive.books.one(
        "SELECT leaf_index IS NOT NULL AS sealed FROM offpeak.usage_record WHERE record_id = %s",
        last,
    ).sealed


async def test_no_more_rotations_are_logged_than_a_receipt_carries(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (log_module, rotation_module, sequencer_module):
        monkeypatch.setattr(module, "MAX_ROTATIONS", 3)
    await archive.seal(BUYER)
    for number in range(2):
        await rotated(archive, Rotation(record_key=SigningKey(seed(f"record {number}")).address))
    size = (await archive.reader.checkpoint()).size
    with pytest.raises(RotationRefused, match="3 rotations"):
        await rotated(archive, Rotation(record_key=NEXT_RECORD_KEY))
    assert (await archive.reader.checkpoint()).size == size
