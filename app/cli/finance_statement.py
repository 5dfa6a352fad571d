"""`offpeak finance statement`."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput
from app.cli.finance_options import Asset, From, Month, To, required_interval
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.finance.statement import Holder, Movement, Statement
    from ledger.encoding import Address

EXAMPLE = "Example: offpeak finance statement --fees --from 2026-01 --to 2026-02"

OfWallet = Annotated[str | None, typer.Option("--wallet", help="A wallet's address.")]
OfSupplier = Annotated[str | None, typer.Option("--supplier", help="A supplier, sup_<uuid>.")]
OfFees = Annotated[bool, typer.Option("--fees", help="Our own fees.")]


def statement(
    *,
    wallet: OfWallet = None,
    supplier: OfSupplier = None,
    fees: OfFees = False,
    start: From = None,
    end: To = None,
    month: Month = None,
    asset: Asset = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Show one account: opening, movements, closing.

    From --from up to but not including --to, UTC: the closing balance is the next one's opening.
    """
    if sum((wallet is not None, supplier is not None, fees)) != 1:
        raise BadInput("whose? one of --wallet, --supplier and --fees")
    interval = required_interval(start, end, month)

    async def run() -> None:
        from app.cli.server import reader_database  # noqa: PLC0415  # --help does without
        from app.finance.statement import Statements  # noqa: PLC0415
        from ledger.encoding import parse_address  # noqa: PLC0415

        async with reader_database(home) as (database, settings):
            token = parse_address(asset or settings.token_address)
            holder = holder_of(wallet, supplier, token)
            async with Statements(database).of(holder, interval) as found:
                if as_json:
                    await write_json(found)
                else:
                    await write_text(found, Output(as_json=False))

    asyncio.run(run())


def holder_of(wallet: str | None, supplier: str | None, token: "Address") -> "Holder":
    """Return whose account is asked for; fees for neither wallet nor supplier.

    Raises:
        BadAddress, MalformedId: it cannot be read.
    """
    from app.finance.statement import Holder  # noqa: PLC0415  # --help does without
    from app.kit.ids import IdPrefix, parse_id  # noqa: PLC0415
    from ledger.accounts import AccountKind  # noqa: PLC0415
    from ledger.encoding import parse_address  # noqa: PLC0415

    if wallet is not None:
        return Holder(AccountKind.WALLET, parse_address(wallet), token)
    if supplier is not None:
        return Holder(AccountKind.SUPPLIER, str(parse_id(IdPrefix.SUPPLIER, supplier)), token)
    return Holder.fees(token)


def shown_holder(holder: "Holder") -> str:
    """Return whose account it is, as it was asked for."""
    from app.kit.ids import IdPrefix  # noqa: PLC0415  # --help does without
    from ledger.accounts import AccountKind  # noqa: PLC0415
    from ledger.encoding import Address, checksum_address  # noqa: PLC0415

    match holder.kind:
        case AccountKind.WALLET:
            return f"wallet {checksum_address(Address(holder.owner))}"
        case AccountKind.SUPPLIER:
            return f"supplier {IdPrefix.SUPPLIER}_{holder.owner}"
        case _:
            return "fees"


def shown_reference(movement: "Movement") -> str:
    """Return what a movement belongs to, by the id that other commands take."""
    from app.finance.statement import MovementKind  # noqa: PLC0415  # --help does without
    from app.kit.ids import IdPrefix, format_id  # noqa: PLC0415

    match movement.kind:
        case MovementKind.CHARGE | MovementKind.REFUND:
            return format_id(IdPrefix.JOB, movement.reference)
        case MovementKind.ACCRUAL:
            return format_id(IdPrefix.LEASE, movement.reference)
        case _:  # an event of the chain, a withdrawal or a payout
            return str(movement.reference)


def head(found: "Statement") -> dict[str, object]:
    """Return everything but the movements, as JSON."""
    from app.kit.clock import format_time  # noqa: PLC0415  # --help does without
    from ledger.encoding import checksum_address  # noqa: PLC0415
    from ledger.money import format_amount  # noqa: PLC0415

    return {
        "account": shown_holder(found.holder),
        "asset": checksum_address(found.holder.asset),
        "from": format_time(found.interval.start),
        "to": format_time(found.interval.end),
        "final": found.is_final,
        "opening": format_amount(found.opening),
        "closing": format_amount(found.closing),
        "held": format_amount(found.held),
        "available": format_amount(found.available),
        "pending": format_amount(found.pending),
        "count": found.count,
    }


async def write_json(found: "Statement") -> None:
    """Write one JSON document, a movement at a time: a year of them need not fit in memory."""
    from app.kit.clock import format_time  # noqa: PLC0415  # --help does without
    from ledger.money import format_amount  # noqa: PLC0415

    opened = json.dumps(head(found), indent=2).removesuffix("\n}")
    sys.stdout.write(f'{opened},\n  "movements": [')
    separator = "\n    "
    async for each in found.movements():
        document = {
            "booked_at": format_time(each.booked_at),
            "happened_at": format_time(each.happened_at),
            "kind": each.kind,
            "reference": shown_reference(each),
            "amount": format_amount(each.amount),
            "balance": format_amount(each.balance),
        }
        sys.stdout.write(separator + json.dumps(document))
        separator = ",\n    "
    sys.stdout.write("\n  ]\n}\n" if separator.startswith(",") else "]\n}\n")
    sys.stdout.flush()


async def write_text(found: "Statement", output: Output) -> None:
    """Write a line for the opening balance, one for each movement, and the closing figures."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without
    from ledger.money import format_amount  # noqa: PLC0415

    output.write(f"{shown_holder(found.holder)}, {found.interval}")
    output.write(f"all amounts are of {checksum_address(found.holder.asset)}")
    output.write(columns("", "opening", "", "", format_amount(found.opening)))
    async for each in counted(found, output):
        amount, balance = format_amount(each.amount), format_amount(each.balance)
        at = f"{each.booked_at:%Y-%m-%d %H:%M:%S}"
        text = columns(at, each.kind, shown_reference(each), amount, balance)
        late = each.booked_at.replace(microsecond=0) > each.happened_at
        output.write(f"{text}  late: {each.happened_at:%Y-%m-%d %H:%M:%S}" if late else text)
    output.write(columns("", "closing", "", "", format_amount(found.closing)))
    if found.holder.kind == "wallet":
        parts = {"held": found.held, "available": found.available, "pending": found.pending}
        for name, part in parts.items():
            output.write(columns("", name, "", "", format_amount(part)))
    output.note(
        "final: every month of it is closed"
        if found.is_final
        else "not final: a month of it is not closed yet"
    )


def columns(at: str, kind: str, reference: str, amount: str, balance: str) -> str:
    """Return one line, its columns in step."""
    return f"{at:<19}  {kind:<9}  {reference:<42}  {amount:>20}  {balance:>20}"


async def counted(found: "Statement", output: Output) -> "AsyncIterator[Movement]":
    """Yield the movements, with a progress bar when they go to a file or a pipe."""
    from rich.progress import Progress  # noqa: PLC0415  # --help does without

    with Progress(console=output.notes, transient=True, disable=output.data.is_terminal) as bar:
        task = bar.add_task("movements", total=found.count)
        async for each in found.movements():
            yield each
            bar.advance(task)
