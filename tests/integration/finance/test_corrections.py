"""A correction charges less, says so in a record of its own, and never twice."""

import asyncio
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.db.engine import OPERATOR_ROLE, open_database
from app.finance.check import LedgerCheck
from app.finance.corrections import Correction, Corrections
from app.finance.errors import (
    ChargeNotLess,
    CorrectedAlready,
    CorrectionConflict,
    FinanceError,
    UnknownRecord,
)
from app.kit.cipher import ContentCipher
from app.receipts.bundle import ReceiptService
from app.receipts.record import RecordSigner, usage_record_of
from app.receipts.repository import ReceiptRepository
from ledger.encoding import uuid_bytes32
from ledger.money import Nano
from ledger.receipt import Receipt
from ledger.usage import Outcome
from tests.integration.books import ASSET, wallet
from tests.integration.receipts.conftest import DOMAIN, Archive, seed

BUYER = wallet(1)


async def test_a_correction_is_the_wallets_next_record_and_gives_the_difference_back(
    archive: Archive,
) -> None:
    first, corrected = archive.end_jobs(BUYER, 2, charge=7)
    before = archive.books.balance(BUYER)
    correction = uuid4()

    assert archive.books.correct(corrected, 3, correction=correction) == "ok"

    assert archive.books.balance(BUYER) == (before[0] + 4, before[1])
    async with archive.database.statement() as tx:
        found = await ReceiptRepository(tx).records([first, corrected, correction])
    old, new = usage_record_of(found[corrected]), usage_record_of(found[correction])
    assert new.outcome is Outcome.CORRECTION
    assert new.corrects_record == uuid_bytes32(corrected)
    assert (new.held_nano, new.charge_nano, new.released_nano) == (7, 3, 4)
    assert (new.payer_seq, new.prev_payer_record) == (3, uuid_bytes32(corrected))
    assert (new.quote_digest, new.accept_digest) == (old.quote_digest, old.accept_digest)
    assert (new.input_tokens, new.output_tokens) == (old.input_tokens, old.output_tokens)
    assert (new.payer, new.model_revision) == (old.payer, old.model_revision)
    assert new.salt != old.salt
    assert new.include_by == new.completed_at + 24 * 3600
    assert (await LedgerCheck(archive.database).run()).is_clean


async def test_a_correction_is_signed_sealed_and_has_a_receipt(archive: Archive) -> None:
    [job] = await archive.seal(BUYER)
    correction = uuid4()
    archive.books.correct(job, 0, correction=correction)
    assert await archive.sign() == 1
    assert (await archive.sequencer().run_once()).sealed == 1

    signer = RecordSigner(seed("record"), DOMAIN)
    cipher = ContentCipher([bytes(32)])
    service = ReceiptService(archive.database, signer, cipher, token=ASSET)
    receipt = Receipt.parse(await service.receipt(correction, payer=BUYER))

    original = Receipt.parse(await service.receipt(job, payer=BUYER))
    assert receipt.quote == original.quote
    assert receipt.acceptance == original.acceptance
    assert receipt.batch is not None


async def test_a_correction_can_be_corrected_but_no_record_twice(archive: Archive) -> None:
    [job] = archive.end_jobs(BUYER, charge=7)
    once, twice = uuid4(), uuid4()
    assert archive.books.correct(job, 5, correction=once) == "ok"
    assert archive.books.correct(job, 4) == "corrected_already"
    assert archive.books.correct(once, 5) == "not_less"
    assert archive.books.correct(once, 0, correction=twice) == "ok"
    assert archive.books.correct(twice, 0) == "not_less"
    rows = archive.books.rows("SELECT job_id FROM offpeak.correction")
    assert [row.job_id for row in rows] == [job, job]
    assert archive.books.balance(BUYER) == (10, 0), "all that was charged is back"
    assert (await LedgerCheck(archive.database).run()).is_clean


async def test_repeating_a_correction_changes_nothing_and_another_under_its_id_is_refused(
    archive: Archive,
) -> None:
    job, other = archive.end_jobs(BUYER, 2, charge=7)
    correction = uuid4()
    assert archive.books.correct(job, 5, correction=correction) == "ok"
    after = archive.books.balance(BUYER)
    assert archive.books.correct(job, 5, correction=correction) == "duplicate"
    for corrects, charge, because in ((job, 4, "a test"), (other, 5, "a test"), (job, 5, "no")):
        code = archive.books.correct(corrects, charge, correction=correction, because=because)
        assert code == "conflict"
    assert archive.books.correct(job, 5, correction=other) == "conflict", "a job's own id"
    assert archive.books.balance(BUYER) == after


async def test_two_operators_at_once_correct_it_once(
    archive: Archive, fresh_database_url: str
) -> None:
    jobs = archive.end_jobs(BUYER, 10, charge=7)
    database = open_database(fresh_database_url, role=OPERATOR_ROLE)

    async def correct(job: UUID) -> bool:
        said = Correction(record_id=uuid4(), corrects=job, charge=Nano(3), because="raced")
        try:
            return await Corrections(database).correct(said) == 4
        except CorrectedAlready:
            return False

    made = await asyncio.gather(*(correct(job) for job in jobs for _ in range(4)))
    await database.dispose()

    assert sum(made) == len(jobs)
    assert archive.books.balance(BUYER) == (100 - 3 * len(jobs), 0)
    assert (await LedgerCheck(archive.database).run()).is_clean


@pytest.mark.parametrize(
    ("charge", "error"), [(7, ChargeNotLess), (8, ChargeNotLess), (-1, ChargeNotLess)]
)
async def test_a_correction_charges_less_and_not_less_than_nothing(
    archive: Archive, fresh_database_url: str, charge: int, error: type[FinanceError]
) -> None:
    [job] = archive.end_jobs(BUYER, charge=7)
    database = open_database(fresh_database_url, role=OPERATOR_ROLE)
    said = Correction(record_id=uuid4(), corrects=job, charge=Nano(charge), because="x")
    with pytest.raises(error):
        await Corrections(database).correct(said)
    await database.dispose()
    assert archive.books.correct(job, charge) == "not_less"


async def test_what_stands_in_the_way_of_a_correction_is_told(
    archive: Archive, fresh_database_url: str
) -> None:
    job, other = archive.end_jobs(BUYER, 2, charge=7)
    database = open_database(fresh_database_url, role=OPERATOR_ROLE)
    corrections, once = Corrections(database), uuid4()
    said = Correction(record_id=once, corrects=job, charge=Nano(1), because="x")
    assert await corrections.correct(said) == 6
    assert await corrections.correct(said) == 6, "repeated: the same answer"
    for wrong, error in (
        (
            Correction(record_id=once, corrects=other, charge=Nano(1), because="x"),
            CorrectionConflict,
        ),
        (
            Correction(record_id=uuid4(), corrects=job, charge=Nano(0), because="x"),
            CorrectedAlready,
        ),
        (
            Correction(record_id=uuid4(), corrects=uuid4(), charge=Nano(0), because="x"),
            UnknownRecord,
        ),
    ):
        with pytest.raises(error):
            await corrections.correct(wrong)
    await database.dispose()
    async with archive.database.statement() as tx:
        assert await tx.scalar(text("SELECT count(*) FROM offpeak.correction")) == 1


def test_a_correction_cannot_have_the_id_that_means_no_record(archive: Archive) -> None:
    [job] = archive.end_jobs(BUYER)
    assert archive.books.correct(job, 3, correction=UUID(int=0)) == "conflict"
    assert archive.books.correct(job, 3, correction=uuid4()) == "ok"
