"""`offpeak supplier list|register|authorize|suspend`; payouts have a module of their own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import payout
from app.cli.errors import BadInput
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.capacity.supplier_list import SupplierLine
    from app.capacity.suppliers import SupplierService

app = typer.Typer(help="Who may serve: suppliers and their agents.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The supplier's name.", show_default=False)]
DeviceKey = Annotated[
    str, typer.Option(help="The agent's public key, 64 hex digits: `offpeak-agent key`.")
]
SupplierId = Annotated[str, typer.Argument(help="sup_<uuid>", show_default=False)]
KEY_BYTES = 32

app.command("payout", epilog=payout.PAYOUT_EXAMPLE)(payout.payout)
app.command("payout-address", epilog=payout.ADDRESS_EXAMPLE)(payout.payout_address)


@app.command("list", epilog="Example: offpeak supplier list --json")
def list_all(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """List suppliers and their agents: state, and whether the agent is connected."""
    from app.kit.ids import IdPrefix, format_id  # noqa: PLC0415  # --help does without

    output = Output(as_json=as_json)
    lines = [
        {
            "supplier": format_id(IdPrefix.SUPPLIER, line.supplier_id),
            "name": line.name,
            "state": line.state,
            "agent": format_id(IdPrefix.AGENT, line.agent_id),
            "session": line.session or "never",
        }
        for line in asyncio.run(listed(home))
    ]
    if as_json:
        output.show({"suppliers": lines})
        return
    for line in lines:
        output.write("  ".join(line.values()))
    if not lines:
        output.note("no suppliers yet: offpeak supplier register")


@app.command(epilog="Example: offpeak supplier register acme --device-key $(offpeak-agent key ...)")
def register(
    name: Name, *, device_key: DeviceKey, home: Home = DEFAULT_HOME, as_json: Json = False
) -> None:
    """Register a supplier with its first agent. Serves nothing until it is authorized."""
    rows = asyncio.run(registered(home, name, parse_device_key(device_key)))
    Output(as_json=as_json).rows(dict(rows), rows)


@app.command(epilog="Example: offpeak supplier authorize sup_01990000-0000-7000-8000-000000000000")
def authorize(supplier: SupplierId, *, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Let a supplier's agents serve."""
    asyncio.run(change(home, supplier, "authorize"))
    rows = [("supplier", supplier), ("state", "authorized")]
    Output(as_json=as_json).rows(dict(rows), rows)


@app.command(epilog="Example: offpeak supplier suspend sup_01990000-0000-7000-8000-000000000000")
def suspend(supplier: SupplierId, *, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Give a supplier's agents no new work."""
    asyncio.run(change(home, supplier, "suspend"))
    rows = [("supplier", supplier), ("state", "suspended")]
    Output(as_json=as_json).rows(dict(rows), rows)


def parse_device_key(text: str) -> bytes:
    """Return the 32 bytes of a public key in hex; BadInput for anything else."""
    try:
        key = bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadInput("--device-key must be 64 hex digits")
    return key


async def registered(home: Path, name: str, device_key: bytes) -> list[tuple[str, str]]:
    """Register and return the new ids."""
    from app.kit.ids import IdPrefix, format_id  # noqa: PLC0415  # --help does without

    async with suppliers(home) as service:
        made = await service.register(name, device_key)
    return [
        ("supplier", format_id(IdPrefix.SUPPLIER, made.supplier_id)),
        ("agent", format_id(IdPrefix.AGENT, made.agent_id)),
        ("state", "pending"),
    ]


async def listed(home: Path) -> "list[SupplierLine]":
    """Return every registered agent."""
    from app.capacity.supplier_list import list_suppliers  # noqa: PLC0415  # --help does without
    from app.cli.server import operator_database  # noqa: PLC0415

    async with operator_database(home) as (database, _), database.statement() as tx:
        return await list_suppliers(tx)


async def change(home: Path, supplier: str, act: str) -> None:
    """Authorize or suspend."""
    from app.kit.ids import IdPrefix, parse_id  # noqa: PLC0415  # --help does without

    supplier_id = parse_id(IdPrefix.SUPPLIER, supplier)
    async with suppliers(home) as service:
        if act == "authorize":
            await service.authorize(supplier_id)
        else:
            await service.suspend(supplier_id)


@asynccontextmanager
async def suppliers(home: Path) -> "AsyncGenerator[SupplierService]":
    """Yield the service on the database of the settings."""
    from app.capacity.suppliers import SupplierService  # noqa: PLC0415  # --help does without
    from app.cli.server import operator_database  # noqa: PLC0415
    from ledger.encoding import parse_address  # noqa: PLC0415

    async with operator_database(home) as (database, settings):
        yield SupplierService(database, asset=parse_address(settings.token_address))
