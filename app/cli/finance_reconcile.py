"""`offpeak finance reconcile`."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.finance_options import From, Month, To, interval_of
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.finance.interval import Interval
    from app.finance.reconciliation import Match, Position, Queue, Reconciliation

EXAMPLE = "Example: offpeak finance reconcile --month 2026-01"
NO_CHAIN = "no chain connected"

LateAfter = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="What waits longer for its next step counts as unmatched; so does a record past its"
        " include-by time.",
    ),
]


def reconcile(
    *,
    start: From = None,
    end: To = None,
    month: Month = None,
    late_after: LateAfter = 3600,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Compare the ledger with the records and the log.

    Of what is booked in an interval, or of everything. Lists what does not match, and what waits,
    with its age. Exit code 0: all matches; 10: something does not, or has waited too long.
    """
    from app.finance.errors import Unmatched  # noqa: PLC0415  # --help does without

    output = Output(as_json=as_json)
    interval = interval_of(start, end, month)
    with output.notes.status("reading ledger, records and log"):
        found = asyncio.run(reconciled(home, interval, timedelta(seconds=late_after)))
    if as_json:
        output.show(document(found))
    else:
        for text in lines(found):
            output.write(text)
    if found.unmatched:
        raise Unmatched(found.unmatched)


async def reconciled(
    home: Path, interval: "Interval | None", late_after: timedelta
) -> "Reconciliation":
    """Compare in one snapshot of the database."""
    from app.cli.server import reader_database  # noqa: PLC0415  # --help does without
    from app.finance.reconcile import Reconciler  # noqa: PLC0415

    async with reader_database(home) as (database, _):
        return await Reconciler(database, late_after=late_after).run(interval)


def lines(found: "Reconciliation") -> list[str]:
    """Return a reconciliation for people: what was compared, then what does not fit."""
    from app.kit.clock import format_time  # noqa: PLC0415  # --help does without

    booked = "all that is booked" if found.interval is None else f"booked {found.interval}"
    shown = [f"as of {format_time(found.as_of)}: {booked}"]
    for match in found.matches:
        shown.append(columns(match.name, f"{match.count} UNMATCHED" if match.count else "match"))
        shown += [
            f"    {item.reference}: expected {item.expected}, found {item.found},"
            f" {age(item.at, found.as_of)} old"
            for item in match.items
        ]
    for queue in found.queues:
        state = f"{queue.count} waiting" if queue.count else "none"
        shown.append(columns(queue.name, f"{state}, {queue.late} LATE" if queue.late else state))
        shown += [
            f"    {item.reference}: for {age(item.since, found.as_of)}"
            + (", LATE" if item.is_late else "")
            for item in queue.items
        ]
    for position in found.positions:
        shown += position_lines(position)
    return [*shown, columns("chain", NO_CHAIN)]


def position_lines(position: "Position") -> list[str]:
    """Return where a token's money is, so that the sums can be followed."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without
    from ledger.money import format_amount  # noqa: PLC0415

    parts = [
        ("deposits", position.deposits),
        ("wallets, available", position.available),
        ("wallets, held", position.held),
        ("suppliers payable", position.suppliers),
        ("fees", position.fees),
        ("others", position.others),
    ]
    state = "adds up"
    if position.difference:
        state = f"DIFFERS by {format_amount(position.difference)}"
    listed = [f"    {name:<24}{format_amount(amount):>24}" for name, amount in parts]
    return [columns("money", f"{state}, in {checksum_address(position.asset)}"), *listed]


def columns(name: str, state: str) -> str:
    """Return a line's name and state, in step."""
    return f"{name:<28}{state}"


def age(since: datetime, now: datetime) -> str:
    """Return how long ago, in its two largest units; 0 s for what lies ahead."""
    seconds = max(int((now - since).total_seconds()), 0)
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    known = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(known[:2]) or "0 s"


def document(found: "Reconciliation") -> dict[str, object]:
    """Return a reconciliation as JSON."""
    from app.kit.clock import format_time  # noqa: PLC0415  # --help does without

    interval = found.interval
    return {
        "as_of": format_time(found.as_of),
        "from": None if interval is None else format_time(interval.start),
        "to": None if interval is None else format_time(interval.end),
        "unmatched": found.unmatched,
        "late_after_seconds": int(found.late_after.total_seconds()),
        "matches": [match_document(each, found.as_of) for each in found.matches],
        "waiting": [queue_document(each, found.as_of) for each in found.queues],
        "money": [position_document(each) for each in found.positions],
        "chain": NO_CHAIN,
    }


def match_document(match: "Match", now: datetime) -> dict[str, object]:
    """Return a comparison as JSON."""
    return {
        "name": match.name,
        "claim": match.claim,
        "unmatched": match.count,
        "first": [
            {
                "reference": item.reference,
                "expected": item.expected,
                "found": item.found,
                "age_seconds": int((now - item.at).total_seconds()),
            }
            for item in match.items
        ],
    }


def queue_document(queue: "Queue", now: datetime) -> dict[str, object]:
    """Return what waits as JSON."""
    return {
        "name": queue.name,
        "claim": queue.claim,
        "waiting": queue.count,
        "late": queue.late,
        "first": [
            {
                "reference": item.reference,
                "age_seconds": int((now - item.since).total_seconds()),
                "late": item.is_late,
            }
            for item in queue.items
        ],
    }


def position_document(position: "Position") -> dict[str, str]:
    """Return where a token's money is, as decimal strings."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without
    from ledger.money import format_amount  # noqa: PLC0415

    return {
        "asset": checksum_address(position.asset),
        "deposits": format_amount(position.deposits),
        "wallets_available": format_amount(position.available),
        "wallets_held": format_amount(position.held),
        "suppliers_payable": format_amount(position.suppliers),
        "fees": format_amount(position.fees),
        "others": format_amount(position.others),
        "difference": format_amount(position.difference),
    }
