"""`offpeak ledger check|clear`."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import LedgerMismatch
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.finance.check import Report

app = typer.Typer(help="The ledger.", no_args_is_help=True)

Because = Annotated[str, typer.Option(help="What was wrong and what you did; it is recorded.")]


@app.command(epilog="Example: offpeak ledger check --json")
def check(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Recompute the books from scratch.

    Every balance, hold, lease and record; a broken rule stops accepting.
    """
    report = asyncio.run(checked(home))
    rows = [("as of", report.as_of.isoformat())]
    rows += [(name, str(count)) for name, count in asdict(report.totals).items()]
    for finding in report.findings:
        state = f"BROKEN: {finding.count} differences" if finding.count else "ok"
        rows.append((finding.rule.name, state))
    document = report_document(report)
    output = Output(as_json=as_json)
    output.rows(document, rows)
    if report.is_clean and not as_json:
        output.write(f"the books add up: {len(report.findings)} rules ok")
    if not report.is_clean:
        raise LedgerMismatch(report.summary())


@app.command(epilog="Example: offpeak ledger clear --because 'row 17 was a test of ours, removed'")
def clear(*, because: Because, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Accept again after you have found out why the books did not add up."""
    lifted = asyncio.run(cleared(home, because))
    rows = [("halts lifted", str(lifted))]
    Output(as_json=as_json).rows({"halts_lifted": lifted}, rows)


def report_document(report: "Report") -> dict[str, object]:
    """Return a report as JSON: every rule with its first differences."""
    return {
        "as_of": report.as_of.isoformat(),
        "clean": report.is_clean,
        "totals": asdict(report.totals),
        "rules": [
            {
                "name": finding.rule.name,
                "differences": finding.count,
                "first": [asdict(difference) for difference in finding.differences],
            }
            for finding in report.findings
        ],
    }


async def checked(home: Path) -> "Report":
    """Run the check in one snapshot of the database; stop accepting when it fails."""
    from app.cli.server import store_settings  # noqa: PLC0415  # --help does without
    from app.db.engine import open_database  # noqa: PLC0415
    from app.finance.check import LedgerCheck  # noqa: PLC0415

    settings = store_settings(home)
    database = open_database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        return await LedgerCheck(database).run_and_halt()
    finally:
        await database.dispose()


async def cleared(home: Path, because: str) -> int:
    """Lift every halt, as the operator; return how many there were."""
    from app.cli.server import store_settings  # noqa: PLC0415  # --help does without
    from app.db.engine import OPERATOR_ROLE, open_database  # noqa: PLC0415
    from app.finance.check import LedgerCheck  # noqa: PLC0415

    settings = store_settings(home)
    database = open_database(settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    try:
        return await LedgerCheck(database).clear(because)
    finally:
        await database.dispose()
