"""`offpeak treasury transactions|abandon`: what we have on the way to the chain."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.config import Settings
    from app.treasury.abandoning import Abandoning
    from app.treasury.transaction import StoredTransaction

Because = Annotated[str, typer.Option(help="Why; kept with each transaction.")]
Key = Annotated[
    str | None,
    typer.Option(help="Everything of this address, which sends no more.", metavar="0x.."),
]
Stuck = Annotated[
    bool,
    typer.Option("--stuck", help="Those whose nonce a stranger used, proved at a final block."),
]


def transactions(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """List our transactions that have not ended, oldest first, and why each does not move."""
    found = asyncio.run(_open_ones(home))
    output = Output(as_json=as_json)
    if as_json:
        output.show({"transactions": [document(each) for each in found]})
        return
    for each in found:
        nonce = "no nonce" if each.nonce is None else f"nonce {each.nonce}"
        line = f"{each.id}  {each.purpose:<10}  {each.state:<6}  {nonce}  {each.sender}"
        output.write(f"{line}  {each.last_error or ''}".rstrip())
    if not found:
        output.note("nothing is on the way")


def abandon(
    *,
    because: Because,
    key: Key = None,
    stuck: Stuck = False,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Follow transactions no more that can move no more, so that their work is sent anew.

    Nothing is paid twice by this: the contracts use each withdrawal, payout and refund once.
    """
    if stuck == (key is not None):
        raise BadInput("name --key ADDRESS or --stuck, and not both")
    count = asyncio.run(_abandon(home, key, because))
    output = Output(as_json=as_json)
    output.rows({"abandoned": count}, [("abandoned", str(count))])
    if count == 0:
        output.note("nothing to abandon: `offpeak treasury transactions` shows what is on the way")


def document(tx: "StoredTransaction") -> dict[str, object]:
    """Return a transaction as JSON."""
    return {
        "id": str(tx.id),
        "purpose": str(tx.purpose),
        "subject": str(tx.subject),
        "sender": tx.sender,
        "state": str(tx.state),
        "nonce": tx.nonce,
        "hashes": ["0x" + attempt.hash.hex() for attempt in tx.attempts],
        "tries": tx.tries,
        "reason": tx.last_error,
    }


async def _open_ones(home: Path) -> "list[StoredTransaction]":
    async with _abandoning(home) as (abandoning, _):
        return await abandoning.open_ones()


async def _abandon(home: Path, key: str | None, because: str) -> int:
    from app.cli.server import sending_keys  # noqa: PLC0415  # --help does without
    from ledger.encoding import parse_address  # noqa: PLC0415  # --help does without

    async with _abandoning(home) as (abandoning, settings):
        if key is None:
            return await abandoning.stuck(because=because)
        sending = sending_keys(settings)
        return await abandoning.of_key(parse_address(key), sending=sending, because=because)


@asynccontextmanager
async def _abandoning(home: Path) -> "AsyncGenerator[tuple[Abandoning, Settings]]":
    from app.cli.server import store_settings  # noqa: PLC0415
    from app.treasury.abandoning import Abandoning  # noqa: PLC0415
    from app.treasury.errors import ChainNotConfigured  # noqa: PLC0415
    from app.treasury.parts import chain_of, treasury_database_of  # noqa: PLC0415

    settings = store_settings(home)
    chain = chain_of(settings)
    if chain is None:
        raise ChainNotConfigured
    database = treasury_database_of(settings)
    try:
        async with chain:
            yield Abandoning(database, chain, chain_id=settings.chain_id), settings
    finally:
        await database.dispose()
