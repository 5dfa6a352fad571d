"""`offpeak finance reconcile`."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.finance_options import From, Month, To, interval_of
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.config import Settings
    from app.db.engine import Database
    from app.finance.interval import Interval
    from app.finance.reconciliation import (
        ChainCompared,
        Match,
        Position,
        Queue,
        Reconciliation,
    )

EXAMPLE = "Example: offpeak finance reconcile --month 2026-01"
PARTS = {
    "treasury": "treasury, on chain",
    "made_up": "made up (development)",
    "available": "wallets, available",
    "held": "wallets, held",
    "withdrawals": "withdrawals under way",
    "exits": "set aside for exits",
    "suspense": "suspense",
    "suppliers": "suppliers payable",
    "payouts": "payouts under way",
    "fees": "fees",
    "receivable": "receivable (owed to us)",
}

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

    async with reader_database(home) as (database, settings):
        found = await Reconciler(database, late_after=late_after).run(interval)
        return replace(found, chain=await compared(settings, database))


async def compared(settings: "Settings", database: "Database") -> "ChainCompared":
    """Compare the chain with the books, where there is one."""
    from app.chain.errors import ChainError  # noqa: PLC0415
    from app.finance.reconciliation import NO_CHAIN, ChainCompared  # noqa: PLC0415
    from app.treasury.errors import FinalBlockUnknown  # noqa: PLC0415
    from app.treasury.parts import chain_of, status_terms  # noqa: PLC0415
    from app.treasury.status_reader import StatusReader  # noqa: PLC0415

    rpc = chain_of(settings)
    if rpc is None:
        return NO_CHAIN
    try:
        async with rpc:
            status = await StatusReader(database, rpc, status_terms(settings)).read()
    except (ChainError, FinalBlockUnknown) as error:
        return ChainCompared("NOT COMPARED", problem=str(error))
    if status.chain is None:
        return ChainCompared("not scanned yet")
    where = f"final block {status.chain.block.number}"
    if status.holds:
        return ChainCompared(f"agrees to the unit at {where}")
    return ChainCompared(
        f"DIFFERS at {where}", problem="; ".join(each.detail for each in status.alarms())
    )


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
    problem = f": {found.chain.problem}" if found.chain.problem else ""
    return [*shown, columns("chain", found.chain.state + problem)]


def position_lines(position: "Position") -> list[str]:
    """Return where a token's money is, so that the sums can be followed."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without
    from ledger.money import format_amount  # noqa: PLC0415

    state = "adds up"
    if position.difference:
        state = f"DIFFERS by {format_amount(position.difference)}"
    listed = [
        f"    {shown:<24}{format_amount(getattr(position, name)):>24}"
        for name, shown in PARTS.items()
    ]
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
        "chain": {"state": found.chain.state, "problem": found.chain.problem},
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
        **{name: format_amount(getattr(position, name)) for name in PARTS},
        "difference": format_amount(position.difference),
    }
