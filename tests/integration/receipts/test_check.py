"""`offpeak log check` recomputes everything and names the first difference."""

import pytest

from app.receipts.check import LogCheck, LogReport
from app.receipts.rotation import Rotation, rotate
from ledger.note import NoteSigner
from tests.integration.books import wallet
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, Archive, seed

BUYER, OTHER = wallet(1), wallet(2)
OTHER_SIGNATURE = (
    "usage_record SET signature = set_byte(signature, 9, get_byte(signature, 9) # 1)"
    " WHERE leaf_index = 4"
)
ANOTHER_NOTE = (
    "log_checkpoint x SET note = c.note FROM offpeak.log_checkpoint c"
    " WHERE c.size = 1 AND x.size = 2"
)


async def checked(archive: Archive) -> LogReport:
    return await LogCheck(archive.database, origin=ORIGIN, record_domain=DOMAIN).run()


async def grown(archive: Archive) -> None:
    """Three batches and a rotation in between."""
    await archive.seal(BUYER, 3)
    second = NoteSigner(ORIGIN, seed("second log"))
    await rotate(archive.database, archive.sequencer(), Rotation(checkpoint_key=second))
    archive.terms = type(archive.terms)(second, archive.terms.record_key, DOMAIN)
    await archive.seal(OTHER, 2)
    await archive.seal(BUYER, 30)


async def test_an_empty_log_and_a_whole_one_are_clean(archive: Archive) -> None:
    assert (await checked(archive)).is_clean
    await grown(archive)
    report = await checked(archive)
    assert report == LogReport(entries=5, checkpoints=5, batches=3, records=35, difference=None)


async def test_a_log_that_a_crash_left_half_done_is_clean(archive: Archive) -> None:
    await grown(archive)
    archive.end_jobs(OTHER, 2)
    await archive.sign()
    await archive.sequencer().seal_once()
    assert (await checked(archive)).is_clean
    await archive.sequencer().log_headers()
    assert (await checked(archive)).is_clean


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (ANOTHER_NOTE, "checkpoint of size 2"),
        (
            "usage_record SET charge = charge - 1, released = released + 1 WHERE leaf_index = 4",
            "record",
        ),
        (OTHER_SIGNATURE, "record"),
        (
            "usage_record SET leaf_hash = sha256(leaf_hash) WHERE leaf_index = 4",
            "not what was sealed",
        ),
        ("usage_record SET leaf_index = NULL, leaf_hash = NULL WHERE leaf_index = 4", "is missing"),
        ("usage_record SET leaf_index = 9000 + leaf_index WHERE leaf_index > 33", "is missing"),
        (
            "receipt_batch SET header = replace(encode(header, 'escape'), 'count', 'COUNT')::bytea",
            "batch 0",
        ),
        ("receipt_batch SET chunk_roots = sha256(chunk_roots) WHERE number = 2", "chunk roots"),
        ("log_entry SET entry = entry || ' ' WHERE index = 3", "log entry 3"),
        ("log_entry SET leaf_hash = sha256(leaf_hash) WHERE index = 2", "log entry 2"),
        ("log_node SET hash = sha256(hash) WHERE level = 1 AND index = 1", "log entry 3"),
        ("log_checkpoint SET root = sha256(root) WHERE size = 2", "checkpoint of size 2"),
    ],
)
async def test_the_first_difference_is_named(archive: Archive, damage: str, named: str) -> None:
    await grown(archive)
    archive.tamper(f"UPDATE offpeak.{damage}")
    report = await checked(archive)
    assert report.difference is not None
    assert named in report.difference


@pytest.mark.parametrize(
    ("removed", "named"),
    [
        ("log_checkpoint WHERE size = 2", "the checkpoint of size 2 is missing"),
        ("log_node WHERE level = 0 AND index = 4", "log entry 4"),
        ("log_entry WHERE index = 2", "log entry 2 is missing"),
        ("receipt_batch WHERE number = 1", "batch is missing"),
    ],
)
async def test_what_is_missing_is_named(archive: Archive, removed: str, named: str) -> None:
    await grown(archive)
    archive.tamper(f"DELETE FROM offpeak.{removed}")
    report = await checked(archive)
    assert report.difference is not None
    assert named in report.difference
