"""`offpeak dev fund`: development only; not even registered in production."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.config import Settings
    from ledger.encoding import Address
    from ledger.money import Nano

app = typer.Typer(help="Development only; does not exist in production.", no_args_is_help=True)

To = Annotated[
    str | None, typer.Argument(help="Wallet; this home's by default.", show_default=False)
]
Amount = Annotated[str, typer.Option(help="Money, as a decimal number of the settlement token.")]


@app.command(epilog="Example: offpeak dev fund --amount 5")
def fund(
    address: To = None, *, amount: Amount = "1", home: Home = DEFAULT_HOME, as_json: Json = False
) -> None:
    """Credit a wallet with money that nobody deposited."""
    from app.cli.buyer import wallet_address  # noqa: PLC0415  # --help does without
    from app.cli.server import require_development, store_settings  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from ledger.encoding import checksum_address, parse_address  # noqa: PLC0415
    from ledger.money import format_amount, parse_amount  # noqa: PLC0415

    settings = store_settings(home)
    require_development(settings, "dev fund")
    wallet = parse_address(address) if address else wallet_address(WalletOptions(home=home))
    credited = parse_amount(amount)
    asyncio.run(credit(settings, wallet, credited))
    rows = [("address", checksum_address(wallet)), ("credited", format_amount(credited))]
    Output(as_json=as_json).rows(dict(rows), rows)


async def credit(settings: "Settings", wallet: "Address", amount: "Nano") -> None:
    """Credit a wallet through the service, which refuses production by itself."""
    from app.db.engine import OPERATOR_ROLE, open_database  # noqa: PLC0415
    from app.wallets.funding import FundingService  # noqa: PLC0415

    database = open_database(settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    try:
        await FundingService(database, settings).fund(wallet, amount)
    finally:
        await database.dispose()
