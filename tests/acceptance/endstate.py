"""What must hold when everything has come to rest, whatever happened before."""

from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from app.client.documents import JobDocument
from app.kit.ids import IdPrefix, format_id
from ledger.money import parse_amount
from tests.acceptance.patrons import Notes
from tests.acceptance.site import REPLY, Site
from tests.waiting import wait_until

OPEN_JOBS = "SELECT count(*) AS n FROM offpeak.job WHERE ended_at IS NULL"
RUNNING_JOBS = "SELECT count(*) AS n FROM offpeak.job WHERE state = 'running'"
HALF_ENDED = "SELECT count(*) AS n FROM offpeak.lease WHERE state IN ('active', 'ending')"
JOBS = (
    "SELECT j.id, a.payer, j.state, j.failure_code, r.charged, r.amount, r.released,"
    " (SELECT count(*) FROM offpeak.usage_record u WHERE u.record_id = j.id) AS records,"
    " (SELECT count(*) FROM offpeak.transfer t WHERE t.ref = j.id) AS charges,"
    " (SELECT count(*) FROM offpeak.lease l JOIN offpeak.cost_entry c ON c.lease_id = l.id"
    "   WHERE l.job_id = j.id AND c.kind = 'served') AS served"
    " FROM offpeak.job j LEFT JOIN offpeak.hold_resolution r ON r.hold_id = j.id"
    " JOIN offpeak.request_authorization a ON a.digest = j.authorization_digest"
)
MOST_AT_ONCE = """
    SELECT e.deployment_id, max(e.running) AS most FROM (
      SELECT deployment_id, sum(step) OVER (PARTITION BY deployment_id ORDER BY at, step) AS running
        FROM (SELECT deployment_id, started_at AS at, 1 AS step FROM offpeak.lease
              UNION ALL
              SELECT deployment_id, ended_at, -1 FROM offpeak.lease WHERE ended_at IS NOT NULL) x
    ) e GROUP BY 1"""
WALLETS = (
    "SELECT w.account_id, w.available, w.held,"
    " (SELECT coalesce(sum(t.amount), 0) FROM offpeak.transfer t WHERE t.credit = w.account_id)"
    " AS funded,"
    " (SELECT coalesce(sum(r.charged), 0) FROM offpeak.hold_resolution r"
    "   JOIN offpeak.hold h ON h.id = r.hold_id WHERE h.account_id = w.account_id) AS charged"
    " FROM offpeak.wallet_balance w"
)


def rows(site: Site, query: str) -> list[Any]:
    """Return a query's rows, by name."""
    with psycopg.connect(site.database_url, row_factory=namedtuple_row) as connection:
        return connection.execute(query.encode()).fetchall()


def count(site: Site, query: str) -> int:
    """Return the `n` of a query's one row."""
    [row] = rows(site, query)
    return int(row.n)


def jobs_of(site: Site, payers: set[str]) -> dict[str, Any]:
    """Return what the database says of these wallets' jobs, by id."""
    found = [row for row in rows(site, JOBS) if row.payer in payers]
    return {format_id(IdPrefix.JOB, row.id): row for row in found}


def come_to_rest(site: Site, *, timeout_seconds: float = 90) -> None:
    """Return once no job is open and no slot taken."""
    wait_until(
        lambda: count(site, OPEN_JOBS) == 0 and count(site, HALF_ENDED) == 0,
        timeout_seconds=timeout_seconds,
    )


def assert_whole(site: Site, notes: Notes) -> None:
    """Nothing accepted is lost, nothing charged twice, and both sides' books agree."""
    come_to_rest(site)
    jobs = jobs_of(site, notes.payers)
    assert not notes.changed, notes.changed
    assert jobs.keys() == notes.jobs.keys() | notes.failed.keys()
    for job_id, row in jobs.items():
        assert (row.records, row.charged + row.released) == (1, row.amount), row
        assert row.charges == (1 if row.charged else 0), row
        if job_id in notes.jobs:
            assert_as_told(row, notes.jobs[job_id])
        else:
            assert (row.state, row.charged) == ("failed", 0), row
    assert_money(site)


def assert_as_told(row: Any, told: JobDocument) -> None:
    """A job is stored as its buyer was told: answered, served once, charged that much."""
    assert (row.state, row.served) == ("completed", 1), row
    assert told.state == "completed"
    assert told.answer is not None
    assert told.answer.content == REPLY
    assert told.charge is not None
    assert row.charged == parse_amount(told.charge) > 0, row


def assert_money(site: Site) -> None:
    """No wallet spent more than it had; the ledger check finds nothing."""
    for wallet in rows(site, WALLETS):
        assert wallet.held == 0, wallet
        assert wallet.available == wallet.funded - wallet.charged >= 0, wallet
    report = site.ledger()
    assert report.is_clean, report.summary()


def assert_never_oversold(site: Site, *, slots: int) -> None:
    """By the lease rows, no deployment ever ran more at once than its slots."""
    for row in rows(site, MOST_AT_ONCE):
        assert row.most <= slots, row
