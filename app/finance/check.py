"""`offpeak ledger check`: recompute the books; when they do not add up, stop accepting."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.tables import hold, hold_resolution, transfer, usage_record
from app.finance.rule import Rule, rules

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
        report = await self.run()
        if not report.is_clean:
            async with self._database.transaction() as tx:
                await tx.execute(
                    text("SELECT offpeak.halt_ledger(:reason)"),
                    {"reason": f"ledger check: {report.summary()}"},
                )
        return report

    async def clear(self) -> int:
        """Accept again after an operator has looked; return how many stops were lifted."""
        async with self._database.transaction() as tx:
            return int(await tx.scalar(text("SELECT offpeak.clear_halt()")) or 0)


async def _find(view: AsyncConnection, rule: Rule) -> Finding:
    rows = (await view.execute(text(rule.query))).all()
    return Finding(rule, tuple(Difference(*row) for row in rows[:SHOWN]), len(rows))


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
