"""`offpeak dev fund`: development only; not even registered in production."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.config import Settings
    from ledger.encoding import Address
    from ledger.money import Nano

CREDIT_SECONDS = 30.0
BETWEEN_LOOKS_SECONDS = 0.1

app = typer.Typer(help="Development only; does not exist in production.", no_args_is_help=True)

To = Annotated[
    str | None, typer.Argument(help="Wallet; this home's by default.", show_default=False)
]
Amount = Annotated[str, typer.Option(help="Money, as a decimal number of the settlement token.")]


@app.command(epilog="Example: offpeak dev fund --amount 5")
def fund(
    address: To = None, *, amount: Amount = "1", home: Home = DEFAULT_HOME, as_json: Json = False
) -> None:
    """Give a wallet money: made up, or deposited on the chain that `offpeak up` runs here."""
    from app.cli.buyer import read_up_file, wallet_address  # noqa: PLC0415  # --help does without
    from app.cli.server import require_development, store_settings  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from ledger.encoding import checksum_address, parse_address  # noqa: PLC0415
    from ledger.money import format_amount, parse_amount  # noqa: PLC0415

    settings = store_settings(home)
    require_development(settings, "dev fund")
    wallet = parse_address(address) if address else wallet_address(WalletOptions(home=home))
    credited = parse_amount(amount)
    rows = [("address", checksum_address(wallet)), ("credited", format_amount(credited))]
    url = read_up_file(home).get("rpc_url")
    if url:
        rows.append(("transaction", deposit(settings, home, str(url), wallet, credited)))
    else:
        asyncio.run(credit(settings, wallet, credited))
    Output(as_json=as_json).rows(dict(rows), rows)


def deposit(settings: "Settings", home: Path, url: str, wallet: "Address", amount: "Nano") -> str:
    """Deposit on the home's chain for any wallet and wait until it is credited.

    Raises:
        NotBaseUnits: the token cannot express the amount. StillWaiting: it takes too long.
    """
    from app.client.chain_errors import StillWaiting  # noqa: PLC0415  # --help does without
    from app.client.units import base_units  # noqa: PLC0415
    from app.embedded.chain import chain_of_home  # noqa: PLC0415
    from app.embedded.development import DevelopmentHome  # noqa: PLC0415

    chain = chain_of_home(DevelopmentHome(home.resolve()), url)
    transaction = chain.deposit_for(wallet, base_units(amount))
    if not asyncio.run(is_credited(settings, transaction)):
        look = "offpeak wallet balance"
        raise StillWaiting("not credited yet", waited_seconds=CREDIT_SECONDS, look=look)
    return "0x" + transaction.hex()


async def is_credited(settings: "Settings", transaction: bytes) -> bool:
    """Return whether the worker has booked a deposit within the time."""
    from app.db.engine import open_database  # noqa: PLC0415  # --help does without
    from app.wallets.repository import WalletRepository  # noqa: PLC0415

    database = open_database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        for _ in range(int(CREDIT_SECONDS / BETWEEN_LOOKS_SECONDS)):
            async with database.transaction() as tx:
                if await WalletRepository(tx).is_credited(transaction):
                    return True
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)
        return False
    finally:
        await database.dispose()


async def credit(settings: "Settings", wallet: "Address", amount: "Nano") -> None:
    """Credit a wallet through the service, which refuses production by itself."""
    from app.db.engine import OPERATOR_ROLE, open_database  # noqa: PLC0415
    from app.wallets.funding import FundingService  # noqa: PLC0415

    database = open_database(settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    try:
        await FundingService(database, settings).fund(wallet, amount)
    finally:
        await database.dispose()
