"""What the receipt log must hold when everything has come to rest, whoever was killed."""

import asyncio

from app.assembly import database_of, record_domain_of
from app.config import Settings
from app.receipts.check import LogCheck, LogReport
from tests.acceptance.endstate import count
from tests.acceptance.site import Site
from tests.waiting import wait_until

UNPUBLISHED = (
    "SELECT (SELECT count(*) FROM offpeak.usage_record WHERE leaf_index IS NULL)"
    " + (SELECT count(*) FROM offpeak.receipt_batch b WHERE NOT EXISTS (SELECT FROM"
    "     offpeak.log_entry e JOIN offpeak.log_checkpoint c ON c.size > e.index"
    "     WHERE e.batch_number = b.number)) AS n"
)
RECORDS = "SELECT count(*) AS n FROM offpeak.usage_record"


def assert_evidence(site: Site) -> None:
    """Every record is in exactly one batch of the published log, which adds up from scratch."""
    wait_until(lambda: count(site, UNPUBLISHED) == 0, timeout_seconds=60)
    report = asyncio.run(checked(site.settings()))
    assert report.difference is None, report.difference
    assert report.records == count(site, RECORDS)
    assert report.checkpoints == report.entries


async def checked(settings: Settings) -> LogReport:
    """Recompute the log."""
    database = database_of(settings)
    try:
        domain = record_domain_of(settings)
        return await LogCheck(database, origin=settings.log_origin, record_domain=domain).run()
    finally:
        await database.dispose()
