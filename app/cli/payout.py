"""`offpeak supplier payout|payout-address`: the statement first, then what it says is paid."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from uuid import UUID

    from app.config import Settings
    from app.treasury.payout_plan import SupplierStatement
    from app.treasury.payouts import PayoutService
    from ledger.encoding import Address
    from ledger.money import Nano

PAYOUT_EXAMPLE = "Example: offpeak supplier payout --dry-run"
ADDRESS_EXAMPLE = (
    "Example: offpeak supplier payout-address sup_01990000-0000-7000-8000-000000000000 0x.."
)

SupplierId = Annotated[str, typer.Argument(help="sup_<uuid>", show_default=False)]
PayoutAddress = Annotated[
    str, typer.Argument(help="Where it is paid, EIP-55 or lower case.", show_default=False)
]
OnlySupplier = Annotated[
    str | None, typer.Option("--supplier", help="Pay only this one, sup_<uuid>.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the statement and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Pay without asking.")]


@dataclass(frozen=True, slots=True)
class Funds:
    """What the contract would pay out now, in nano."""

    earned: "Nano"
    today: "Nano"


def payout(
    *,
    supplier: OnlySupplier = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Pay suppliers what they have earned: shows each statement, asks, and sets it aside.

    The worker that holds the operator's key sends it, up to 50 payouts in one transaction, from
    earned funds only and within the contract's limit of the day; what does not fit waits.
    """
    from app.cli.onchain import confirm  # noqa: PLC0415  # --help does without
    from app.client.units import token_text  # noqa: PLC0415

    output = Output(as_json=as_json)
    found, funds = asyncio.run(read_statements(home, supplier))
    due = [each for each in found if each.to_be_paid]
    tell(output, found, funds)
    made: dict[UUID, UUID] = {}
    if due and not dry_run:
        total = token_text(sum(each.to_be_paid for each in due))
        question = f"Pay {total} to {len(due)} supplier{'s' if len(due) > 1 else ''}?"
        confirm(question, yes=yes, output=output)
        made = asyncio.run(requested(home, due))
    if as_json:
        output.show({"statements": [document(each, made) for each in found]})
    elif made:
        output.note(f"{len(made)} set aside; the worker sends them: offpeak treasury status")
    elif not due:
        output.note("nothing to pay")


def payout_address(
    supplier: SupplierId,
    address: PayoutAddress,
    *,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Say where a supplier is paid from now on; payouts under way keep their address."""
    from app.kit.ids import IdPrefix, parse_id  # noqa: PLC0415  # --help does without
    from ledger.encoding import checksum_address, parse_address  # noqa: PLC0415

    supplier_id, parsed = parse_id(IdPrefix.SUPPLIER, supplier), parse_address(address)

    asyncio.run(store_address(home, supplier_id, parsed))
    rows = [("supplier", supplier), ("payout address", checksum_address(parsed))]
    Output(as_json=as_json).rows({"supplier": supplier, "address": rows[1][1]}, rows)


async def store_address(home: Path, supplier_id: "UUID", address: "Address") -> None:
    """Store where a supplier is paid."""
    from app.capacity.suppliers import SupplierService  # noqa: PLC0415  # --help does without
    from app.cli.server import operator_database  # noqa: PLC0415
    from ledger.encoding import parse_address  # noqa: PLC0415

    async with operator_database(home) as (database, settings):
        asset = parse_address(settings.token_address.lower())
        ours = (settings.treasury_address, settings.token_address, f"0x{0:040x}")
        if address in {each.lower() for each in ours}:
            raise BadInput(f"{address} is no supplier's: what goes there is lost or refused")
        await SupplierService(database, asset=asset).set_payout_address(supplier_id, address)


def tell(output: Output, found: "Sequence[SupplierStatement]", funds: Funds | None) -> None:
    """Show the statements to people, and what the contract can pay now."""
    from ledger.money import format_amount  # noqa: PLC0415  # --help does without

    if output.as_json:
        return
    for each in found:
        output.write("  ".join(f"{name} {value}" for name, value in document(each, {}).items()))
    if funds is not None:
        output.note(
            f"earned on chain {format_amount(funds.earned)},"
            f" left of today's limit {format_amount(funds.today)}; what is above waits"
        )


def document(each: "SupplierStatement", made: "dict[UUID, UUID]") -> dict[str, str]:
    """Return a statement as text, with the id of the payout that was made of it."""
    from app.kit.ids import IdPrefix, format_id  # noqa: PLC0415  # --help does without
    from app.treasury.fee import nano  # noqa: PLC0415
    from ledger.encoding import checksum_address  # noqa: PLC0415
    from ledger.money import format_amount  # noqa: PLC0415

    shown = {
        "supplier": format_id(IdPrefix.SUPPLIER, each.supplier_id),
        "name": each.name,
        "accrued": format_amount(each.accrued),
        "paid": format_amount(each.paid),
        "pending": format_amount(each.pending),
        "to_be_paid": format_amount(nano(each.to_be_paid)),
        "address": checksum_address(each.address) if each.address else "none",
    }
    if each.supplier_id in made:
        shown["payout"] = str(made[each.supplier_id])
    return shown


async def read_statements(
    home: Path, supplier: str | None
) -> "tuple[list[SupplierStatement], Funds | None]":
    """Return the statements, and what the contract can pay, where a chain is configured.

    Raises:
        SupplierNotFound: the one that was named is not there.
    """
    from app.capacity.errors import SupplierNotFound  # noqa: PLC0415  # --help does without
    from app.kit.ids import IdPrefix, parse_id  # noqa: PLC0415

    only = None if supplier is None else parse_id(IdPrefix.SUPPLIER, supplier)
    async with payouts(home) as (service, settings):
        found = await service.statements(only)
        if supplier is not None and not found:
            raise SupplierNotFound(supplier)
        return found, await read_funds(settings)


async def read_funds(settings: "Settings") -> Funds | None:
    """Return what the contract can pay now; None without a chain or while nobody says."""
    from app.assembly import lower_address  # noqa: PLC0415  # --help does without
    from app.chain.contracts import TreasuryContract  # noqa: PLC0415
    from app.chain.errors import ChainError  # noqa: PLC0415
    from app.treasury.fee import nano  # noqa: PLC0415
    from app.treasury.parts import chain_of  # noqa: PLC0415

    rpc = chain_of(settings)
    if rpc is None:
        return None
    async with rpc:
        contract = TreasuryContract(rpc, lower_address(settings.treasury_address))
        try:
            earned = await contract.earned("latest")
            return Funds(nano(earned), nano(await contract.payout_room("latest")))
        except ChainError:
            return None


async def requested(home: Path, due: "Sequence[SupplierStatement]") -> "dict[UUID, UUID]":
    """Set aside what the statements say; return the payouts' ids by supplier.

    Raises:
        PayoutRefused: one was earned less meanwhile; those before it are set aside.
    """
    made: dict[UUID, UUID] = {}
    async with payouts(home) as (service, _):
        for each in due:
            made[each.supplier_id] = await service.request(each)
    return made


@asynccontextmanager
async def payouts(home: Path) -> "AsyncGenerator[tuple[PayoutService, Settings]]":
    """Yield the service on the database of the settings."""
    from app.cli.server import operator_database  # noqa: PLC0415  # --help does without
    from app.treasury.parts import new_ids  # noqa: PLC0415
    from app.treasury.payouts import PayoutService  # noqa: PLC0415
    from ledger.encoding import parse_address  # noqa: PLC0415

    async with operator_database(home) as (database, settings):
        asset = parse_address(settings.token_address.lower())
        yield PayoutService(database, asset, new_ids()), settings
