"""`offpeak ledger check`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from app.cli.errors import LedgerMismatch
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output, pairs

if TYPE_CHECKING:
    from app.finance.check import Report

app = typer.Typer(help="The ledger.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Keep `check` a subcommand although it is the only one."""


@app.command(epilog="Example: offpeak ledger check --json")
def check(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Recompute every balance, hold and lease; a mismatch stops new spending."""
    output = Output(as_json=as_json)
    report = asyncio.run(checked(home))
    document = report.document()
    rows = [(name, str(value)) for name, value in document.items()]
    output.show(document, lambda data: data.print(pairs(None, rows)))
    if report.mismatches:
        raise LedgerMismatch(len(report.mismatches))


async def checked(home: Path) -> "Report":
    """Run the check in one snapshot of the database."""
    from app.cli.server import read_settings  # noqa: PLC0415  # --help does without
    from app.db.engine import open_database  # noqa: PLC0415
    from app.finance.check import LedgerCheck  # noqa: PLC0415

    settings = read_settings(home)
    database = open_database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        return await LedgerCheck(database).run()
    finally:
        await database.dispose()
