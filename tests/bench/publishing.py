"""What the sequencer costs: records sealed, logged and published from a real Postgres with fsync.

Every record is read, rebuilt, hashed and its signature recovered twice: before it is sealed and
again before a checkpoint commits to it.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from app.db.engine import open_database
from app.db.migrate import migrate
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.receipts.check import LogCheck
from app.receipts.record import RecordSigner
from app.receipts.sequencer import LogTerms, Sequencer
from app.receipts.service import RecordService
from ledger.encoding import Address
from ledger.note import NoteSigner
from ledger.usage import usage_record_domain
from tests.bench.measure import MICRO, Effort, Measurement, Row, own_cpu, run_async
from tests.integration.books import Books, Order, wallet

ORIGIN = "offpeak.bench/receipts"
DOMAIN = usage_record_domain(chain_id=31_337, receipt_anchor=Address("0x" + "03" * 20))
AT_ONCE = 500
SEEN = b"UPDATE offpeak.agent_session SET seen_at = clock_timestamp()"
"""Or the seller would be taken for silent after 15 s."""
PAYERS = 50


def measure_publishing(effort: Effort) -> Sequence[Row]:
    """Return CPU per record of one round over a backlog, and what memory it takes."""
    records = effort.of(100_000, quick=2_000)
    with EmbeddedPostgres.start(PostgresOptions(fsync=True)) as postgres:
        url = postgres.create_database("bench")
        migrate(url)
        return run_async(publish(url, records))


async def publish(url: str, records: int) -> list[Row]:
    """End and sign so many jobs, then publish and check them."""
    end_jobs(url, records)
    database = open_database(url, pool_size=4)
    signer = RecordSigner(os.urandom(32), DOMAIN)
    while await RecordService(database, signer).sign_unsigned(AT_ONCE):
        pass
    terms = LogTerms(NoteSigner(ORIGIN, os.urandom(32)), Address(signer.key_id), DOMAIN)
    before = resident()
    with own_cpu() as publishing:
        done = await Sequencer(database, terms, 100_000).run_once()
    assert done.sealed == records
    peak = resident("VmHWM") - before
    with own_cpu() as checking:
        report = await LogCheck(database, origin=ORIGIN, record_domain=DOMAIN).run()
    assert report.is_clean
    await database.dispose()
    note = (
        f"{records:,} records in {done.checkpoints - 1} batch, {records / publishing.wall:,.0f}/s"
    )
    return [
        Row(
            name="publish a record (seal, log, verify again, checkpoint)",
            measured=publishing.cpu / records * MICRO,
            unit="us",
            note=note,
        ),
        Row(
            name="the same, memory above start",
            measured=peak,
            unit="MB",
            note="at most: of the whole process",
        ),
        Row(
            name="offpeak log check, a record",
            measured=checking.cpu / records * MICRO,
            unit="us",
            note=f"{records / checking.wall:,.0f}/s",
        ),
    ]


def end_jobs(url: str, records: int) -> None:
    """Accept and settle so many jobs of `PAYERS` wallets."""
    with Books(url) as books, Books(url, role="none") as owner:
        seller = books.seller(AT_ONCE)
        payers = [wallet(number) for number in range(1, PAYERS + 1)]
        for payer in payers:
            books.fund(payer, 10 * records)
        for start in range(0, records, AT_ONCE):
            owner.connection.execute(SEEN)
            orders = [
                Order(
                    payer=payers[place % PAYERS],
                    amount=10,
                    per_request=7,
                    candidates=(seller.deployment_id,),
                )
                for place in range(start, start + AT_ONCE)
            ]
            outcomes = books.accept(orders)
            assert set(books.settle(outcomes, 7)) == {"ok"}


def resident(field: str = "VmRSS") -> float:
    """Return a figure of this process's memory, MB."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


MEASUREMENTS = (Measurement("publish", measure_publishing),)
