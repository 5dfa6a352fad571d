"""`offpeak ledger check`: recompute the books; when they do not add up, stop accepting."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.tables import hold, hold_resolution, transfer, usage_record
from app.finance.rule import Rule, rules

HALT = text("SELECT offpeak.halt_ledger(:reason)")
CLEAR = text("SELECT offpeak.clear_halt(:because)")
SHOWN = 20
"""Most differences kept per rule; the count is always whole."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that breaks a rule."""

    subject: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule with what breaks it: the first differences, and how many there are."""

    rule: Rule
    differences: tuple[Difference, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Totals:
    """How much was looked at."""

    transfers: int
    holds: int
    open_holds: int
    records: int


@dataclass(frozen=True, slots=True)
class Report:
    """The state of the books at `as_of`, by the database clock."""

    as_of: datetime
    totals: Totals
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every rule holds."""
        return all(finding.count == 0 for finding in self.findings)

    def summary(self) -> str:
        """Return the broken rules in one line."""
        return ", ".join(f"{f.rule.name}: {f.count}" for f in self.findings if f.count)


class LedgerCheck:
    """Recomputes everything from transfers, holds and leases."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> Report:
        """Check all rules in one REPEATABLE READ snapshot. Changes nothing."""
        async with self._database.snapshot() as view:
            as_of = await view.scalar(select(func.now()))
            assert isinstance(as_of, datetime)
            totals = await _totals(view)
            findings = [await _find(view, rule) for rule in rules()]
        return Report(as_of, totals, tuple(findings))

    async def run_and_halt(self) -> Report:
        """Check, and stop new accepts when a rule is broken. Running jobs still settle."""
        try:
            report = await self.run()
        except Exception as error:
            # a check that cannot be made is no better than one that fails
            await self._halt(f"ledger check not made: {type(error).__name__}")
            raise
        if not report.is_clean:
            await self._halt(f"ledger check: {report.summary()}")
        return report

    async def _halt(self, reason: str) -> None:
        async with self._database.transaction() as tx:
            await tx.execute(HALT, {"reason": reason})

    async def clear(self, because: str) -> int:
        """Accept again after an operator has looked; return how many halts were lifted."""
        async with self._database.transaction() as tx:
            return int(await tx.scalar(CLEAR, {"because": because}) or 0)


async def _find(view: AsyncConnection, rule: Rule) -> Finding:
    counted = text(f"SELECT *, count(*) OVER () FROM ({rule.query}) AS x LIMIT {SHOWN}")  # noqa: S608 -- our own files
    rows = (await view.execute(counted)).all()
    count = rows[0][-1] if rows else 0
    return Finding(rule, tuple(Difference(*row[:-1]) for row in rows), count)


async def _totals(view: AsyncConnection) -> Totals:
    async def count(table: object) -> int:
        return int(await view.scalar(select(func.count()).select_from(table)) or 0)  # type: ignore[arg-type]  # any table

    holds, ended = await count(hold), await count(hold_resolution)
    return Totals(
        transfers=await count(transfer),
        holds=holds,
        open_holds=holds - ended,
        records=await count(usage_record),
    )
