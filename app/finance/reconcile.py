"""`offpeak finance reconcile`: the ledger against the records against the log, in one snapshot."""

from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.finance.interval import Interval
from app.finance.reconciliation import (
    Delayed,
    Match,
    Position,
    Queue,
    Reconciliation,
    Unmatched,
)
from app.finance.rule import Rule, rules
from app.kit.clock import format_time
from ledger.encoding import Address
from ledger.errors import LedgerError
from ledger.log_entry import AssetSums, BatchHeader, add_up
from ledger.money import Nano

SHOWN: Final = 100
"""Most items kept of a kind; counts are always whole."""
LATE_AFTER: Final = timedelta(hours=1)
"""How long something may wait for its next step: the log is brought up to date every minute."""

_KINDS: Final = {
    "treasury": ("treasury", -1),
    "made_up": ("deposit_clearing", -1),
    "suppliers": ("supplier", 1),
    "fees": ("fee", 1),
    "withdrawals": ("withdraw_clearing", 1),
    "exits": ("exit_clearing", 1),
    "payouts": ("payout_clearing", 1),
    "suspense": ("suspense", 1),
    "receivable": ("receivable", -1),
}
"""Each part of a position, the kind of its accounts, and the sign of their balance in it."""
_SUMS: Final = "".join(
    f" {sign} * coalesce(sum(m.amount) FILTER (WHERE a.kind = '{kind}'), 0)::bigint AS {name},"
    for name, (kind, sign) in _KINDS.items()
)
POSITIONS = text(
    "SELECT a.asset,"  # noqa: S608 -- our own constants
    + _SUMS
    + " (SELECT coalesce(sum(w.available), 0)::bigint FROM offpeak.wallet_balance w"
    "   JOIN offpeak.account x ON x.id = w.account_id AND x.asset = a.asset) AS available,"
    " (SELECT coalesce(sum(w.held), 0)::bigint FROM offpeak.wallet_balance w"
    "   JOIN offpeak.account x ON x.id = w.account_id AND x.asset = a.asset) AS held"
    " FROM offpeak.account a LEFT JOIN ("
    "   SELECT account_id, sum(amount) AS amount FROM ("
    "     SELECT credit AS account_id, amount FROM offpeak.transfer"
    "     UNION ALL SELECT debit, -amount FROM offpeak.transfer) t GROUP BY account_id) m"
    "   ON m.account_id = a.id"
    " GROUP BY a.asset ORDER BY a.asset"
)
# Each batch that holds a record of the interval, with what its records' rows add up to.
BATCHES = text(
    "WITH span AS (SELECT min(u.leaf_index) AS low, max(u.leaf_index) AS high"
    "  FROM offpeak.booked_records(:start, :end) r"
    "  JOIN offpeak.usage_record u ON u.record_id = r.record_id)"
    " SELECT b.number, b.start, b.end, b.header, b.sealed_at, e.entry, f.records, f.sums"
    " FROM span s JOIN offpeak.receipt_batch b ON b.end > s.low AND b.start <= s.high"
    " LEFT JOIN offpeak.log_entry e ON e.batch_number = b.number"
    " CROSS JOIN LATERAL (SELECT coalesce(sum(x.records), 0)::bigint AS records,"
    "   json_agg(json_build_array(x.asset, x.charge::text, x.held::text, x.released::text)) AS sums"
    "   FROM (SELECT a.asset, count(*) AS records, sum(u.charge) AS charge, sum(u.held) AS held,"
    "           sum(u.released) AS released FROM offpeak.usage_record u"
    "           JOIN offpeak.account a ON a.id = u.account_id"
    "          WHERE u.leaf_index >= b.start AND u.leaf_index < b.end GROUP BY a.asset) x) f"
    " ORDER BY b.number"
)
HEADERS = Rule(
    "headers", "Each batch's header says what its records add up to, and the log holds it.", ""
)


class Reconciler:
    """Compares everything that is stored about money. Changes nothing."""

    def __init__(self, database: Database, *, late_after: timedelta = LATE_AFTER) -> None:
        """Take the database and how long anything may wait for its next step."""
        self._database = database
        self._late_after = late_after

    async def run(self, interval: Interval | None = None) -> Reconciliation:
        """Return what matches: of what is booked in the interval, or of everything."""
        bounds = {"start": "-infinity", "end": "infinity"}
        if interval is not None:
            bounds = {"start": format_time(interval.start), "end": format_time(interval.end)}
        async with self._database.snapshot() as view:
            as_of = await view.scalar(text("SELECT now()"))
            assert isinstance(as_of, datetime)
            matches = [await _match(view, rule, bounds) for rule in rules("matches")]
            matches.append(await _match_headers(view, bounds))
            queues = [await self._queue(view, rule, as_of) for rule in rules("waiting")]
            positions = [position(row) for row in await view.execute(POSITIONS)]
        return Reconciliation(
            as_of=as_of,
            interval=interval,
            late_after=self._late_after,
            matches=tuple(sorted(matches, key=lambda match: match.name)),
            queues=tuple(queues),
            positions=tuple(positions),
        )

    async def _queue(self, view: AsyncConnection, rule: Rule, as_of: datetime) -> Queue:
        query = text(
            "SELECT x.*, count(*) OVER (), count(*) FILTER (WHERE x.since < :late OR x.due < :now)"  # noqa: S608 -- our own files
            f" OVER () FROM ({rule.query}) AS x(reference, since, due) ORDER BY x.since"
            f" LIMIT {SHOWN}"
        )
        late = as_of - self._late_after
        rows = (await view.execute(query, {"late": late, "now": as_of})).all()
        items = tuple(
            Delayed(reference, since, since < late or (due is not None and due < as_of))
            for reference, since, due, *_ in rows
        )
        count, late_ones = (rows[0][-2], rows[0][-1]) if rows else (0, 0)
        return Queue(rule.name, rule.claim, items, count, late_ones)


async def _match(view: AsyncConnection, rule: Rule, bounds: dict[str, str]) -> Match:
    query = text(
        "SELECT *, count(*) OVER () FROM ("  # noqa: S608 -- our own files
        f"{rule.query}) AS x(reference, expected, found, at) ORDER BY at LIMIT {SHOWN}"
    )
    rows = (await view.execute(query, bounds_of(query, bounds))).all()
    items = tuple(Unmatched(*row[:-1]) for row in rows)
    return Match(rule.name, rule.claim, items, rows[0][-1] if rows else 0)


def bounds_of(query: TextClause, bounds: dict[str, str]) -> dict[str, str]:
    """Return the bounds that a query names: some are about all there is."""
    return {name: value for name, value in bounds.items() if f":{name}" in query.text}


async def _match_headers(view: AsyncConnection, bounds: dict[str, str]) -> Match:
    first: list[Unmatched] = []
    count = 0
    async for item in _headers_that_differ(view, bounds):
        count += 1
        if count <= SHOWN:
            first.append(item)
    return Match(HEADERS.name, HEADERS.claim, tuple(first), count)


async def _headers_that_differ(
    view: AsyncConnection, bounds: dict[str, str]
) -> AsyncIterator[Unmatched]:
    rows = await view.stream(BATCHES, bounds, execution_options={"yield_per": SHOWN})
    async for row in rows:
        for expected, found in header_differences(row):
            yield Unmatched(f"batch {row.number}", expected, found, row.sealed_at)


def header_differences(row: Any) -> Iterable[tuple[str, str]]:
    """Yield what a row of `BATCHES` says against what its header says."""
    try:
        header = BatchHeader.parse(bytes(row.header))
    except LedgerError as error:
        yield "a header", str(error)
        return
    places = (header.number, header.start, header.end, header.count)
    stored = (row.number, row.start, row.end, row.records)
    if places != stored:
        yield f"number, start, end, records {places}", str(stored)
    sums = add_up(
        AssetSums(
            asset=Address(asset),
            charge=Nano(int(charge)),
            held=Nano(int(held)),
            released=Nano(int(released)),
        )
        for asset, charge, held, released in row.sums or ()
    )
    if sums != header.sums:
        yield _shown(header.sums), _shown(sums)
    if row.entry is not None and bytes(row.entry) != bytes(row.header):
        yield "the header in the log", "other bytes"


def _shown(sums: Iterable[AssetSums]) -> str:
    return "; ".join(f"{s.asset} held {s.held} charge {s.charge}" for s in sums) or "nothing"


def position(row: Any) -> Position:
    """Return a row of `POSITIONS`."""
    parts = {name: Nano(getattr(row, name)) for name in (*_KINDS, "available", "held")}
    return Position(asset=Address(row.asset), **parts)
