"""`offpeak finance period list|soft-close|reopen|close`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.finance.periods import Period, PeriodState

app = typer.Typer(help="Accounting periods: months of UTC.", no_args_is_help=True)

Month = Annotated[str, typer.Argument(help="YYYY-MM", show_default=False)]


@app.command("list", epilog="Example: offpeak finance period list --json")
def list_all(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """List the months that were soft-closed or closed; every other one is open."""
    output = Output(as_json=as_json)
    periods = asyncio.run(listed(home))
    if as_json:
        output.show({"periods": [document(each) for each in periods]})
        return
    for each in periods:
        output.write("  ".join(line(each)))
    if not periods:
        output.note("every month is open: offpeak finance period soft-close YYYY-MM")


@app.command("soft-close", epilog="Example: offpeak finance period soft-close 2026-01")
def soft_close(month: Month, *, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Begin the review of a month that is over. It may be opened again."""
    changed(month, "soft-closed", home, as_json=as_json)


@app.command(epilog="Example: offpeak finance period reopen 2026-01")
def reopen(month: Month, *, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """End the review of a soft-closed month without closing it."""
    changed(month, "open", home, as_json=as_json)


@app.command(epilog="Example: offpeak finance period close 2026-01")
def close(month: Month, *, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Close a soft-closed month for good.

    What comes late is booked in the next one, and so is every correction.
    """
    changed(month, "closed", home, as_json=as_json)


def changed(month: str, state: str, home: Path, *, as_json: bool) -> None:
    """Bring a month to a state and show it."""
    from app.finance.periods import PeriodState, parse_month  # noqa: PLC0415  # --help

    asyncio.run(change(home, parse_month(month), PeriodState(state)))
    rows = [("month", month), ("state", state)]
    Output(as_json=as_json).rows(dict(rows), rows)


def document(period: "Period") -> dict[str, object]:
    """Return a period as JSON."""
    from app.kit.clock import format_time  # noqa: PLC0415  # --help does without

    closed = period.closed_at
    reviewed = period.soft_closed_at
    return {
        "month": period.name,
        "state": period.state,
        "starts_at": format_time(period.starts_at),
        "ends_at": format_time(period.ends_at),
        "soft_closed_at": None if reviewed is None else format_time(reviewed),
        "closed_at": None if closed is None else format_time(closed),
        "closed_leaf": None if period.closed_leaf is None else str(period.closed_leaf),
    }


def line(period: "Period") -> list[str]:
    """Return a period's columns: month, state, since when, the first record it does not hold."""
    from app.kit.clock import format_time  # noqa: PLC0415  # --help does without

    since = period.closed_at or period.soft_closed_at
    columns = [period.name, f"{period.state:<11}"]
    if since is not None:
        columns.append(f"since {format_time(since)}")
    if period.closed_leaf is not None:
        columns.append(f"records sealed before place {period.closed_leaf}")
    return columns


async def listed(home: Path) -> "list[Period]":
    """Return every month that has a row."""
    from app.cli.server import reader_database  # noqa: PLC0415  # --help does without
    from app.finance.periods import Periods  # noqa: PLC0415

    async with reader_database(home) as (database, _):
        return await Periods(database).all()


async def change(home: Path, month: str, state: "PeriodState") -> None:
    """Change a month's state as the operator."""
    from app.cli.server import operator_database  # noqa: PLC0415  # --help does without
    from app.finance.periods import Periods, PeriodState  # noqa: PLC0415

    async with operator_database(home) as (database, _):
        periods = Periods(database)
        match state:
            case PeriodState.SOFT_CLOSED:
                await periods.soft_close(month)
            case PeriodState.OPEN:
                await periods.reopen(month)
            case PeriodState.CLOSED:
                await periods.close(month)
