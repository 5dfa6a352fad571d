"""`offpeak exit request|finalize|cancel|status`: the money back without us.

Needs a node, the wallet and the two addresses; no gateway, no operator.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import (
    DEFAULT_HOME,
    Account,
    Home,
    Json,
    KeystoreFile,
    Mined,
    PasswordFile,
    Rpc,
    Yes,
)
from app.cli.output import Output

if TYPE_CHECKING:
    from app.cli.onchain import ChainOptions
    from app.client.chain import Step, WalletChain
    from app.client.leaving import ExitStatus

    Planner = Callable[[WalletChain, ExitStatus], Awaitable[Step]]

app = typer.Typer(
    help="Take the money out without us; a node and the wallet are enough.", no_args_is_help=True
)

Amount = Annotated[
    str | None, typer.Argument(help="How much, in tokens; all by default.", show_default=False)
]


@app.command(epilog="Example: offpeak exit status --rpc http://127.0.0.1:8545")
def status(
    *,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Show what the contract holds for this wallet, and where its exit stands."""
    from app.cli.onchain import chain_options  # noqa: PLC0415  # --help does without

    options = chain_options(home, keystore, account, password_file, rpc)
    found = asyncio.run(read_status(options))
    Output(as_json=as_json).rows(status_document(found), status_rows(found))


@app.command(epilog="Example: offpeak exit request")
def request(
    amount: Amount = None,
    *,
    yes: Yes = False,
    wait: Mined = 300,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Ask the contract for the money; it can be taken after the delay.

    A second request replaces the first. Until it has ended nothing new is accepted here.
    """
    from app.cli.onchain import chain_options  # noqa: PLC0415
    from app.client.leaving import plan_request  # noqa: PLC0415
    from app.client.units import base_units  # noqa: PLC0415  # --help does without
    from ledger.money import parse_amount  # noqa: PLC0415

    base = None if amount is None else base_units(parse_amount(amount))
    options = chain_options(home, keystore, account, password_file, rpc, yes=yes, wait=wait)
    act(options, lambda chain, found: plan_request(chain, found, base), Output(as_json=as_json))


@app.command(epilog="Example: offpeak exit finalize")
def finalize(
    *,
    yes: Yes = False,
    wait: Mined = 300,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Take the money of a ripe exit; the contract sends it to this wallet."""
    from app.cli.onchain import chain_options  # noqa: PLC0415
    from app.client.leaving import plan_finalize  # noqa: PLC0415  # --help does without

    options = chain_options(home, keystore, account, password_file, rpc, yes=yes, wait=wait)
    act(options, plan_finalize, Output(as_json=as_json))


@app.command(epilog="Example: offpeak exit cancel")
def cancel(
    *,
    yes: Yes = False,
    wait: Mined = 300,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Give the exit up; the money can be used here again once that is final."""
    from app.cli.onchain import chain_options  # noqa: PLC0415
    from app.client.leaving import plan_cancel  # noqa: PLC0415  # --help does without

    options = chain_options(home, keystore, account, password_file, rpc, yes=yes, wait=wait)
    act(options, plan_cancel, Output(as_json=as_json))


def act(options: "ChainOptions", plan: "Planner", output: Output) -> None:
    """Plan, show, ask, send, and show where the exit stands then."""
    from app.cli.onchain import telling_what_goes_on  # noqa: PLC0415  # --help does without

    with telling_what_goes_on(output, look="offpeak exit status"):
        transaction, found = asyncio.run(acted(options, plan, output))
    document = {"transaction": transaction, **status_document(found)}
    output.rows(document, [("transaction", transaction), *status_rows(found)])


async def acted(
    options: "ChainOptions", plan: "Planner", output: Output
) -> "tuple[str, ExitStatus]":
    """Return the hash of what was sent, and the exit after it."""
    from app.cli.onchain import chain_of, confirm, gas_row, opened_wallet  # noqa: PLC0415
    from app.client.leaving import exit_status  # noqa: PLC0415

    async with chain_of(options, opened_wallet(options.wallet)) as chain:
        before = await exit_status(chain)
        step = await plan(chain, before)
        have = await chain.rpc.balance(chain.address)
        output.note_rows([*status_rows(before), gas_row([step], have)])
        confirm(f"{step.what.capitalize()}?", yes=options.yes, output=output)
        done = await chain.send(step, wait_seconds=options.wait_seconds, say=output.note)
        return "0x" + done.receipt.transaction_hash.hex(), await exit_status(chain)


async def read_status(options: "ChainOptions") -> "ExitStatus":
    """Read where the exit stands; the key stays closed where its file names its address."""
    from app.cli.buyer import wallet_address  # noqa: PLC0415  # --help does without
    from app.cli.onchain import chain_of  # noqa: PLC0415
    from app.client.leaving import exit_status  # noqa: PLC0415

    async with chain_of(options, wallet_address(options.wallet)) as chain:
        return await exit_status(chain)


def status_rows(found: "ExitStatus") -> list[tuple[str, str]]:
    """Return an exit as rows of text."""
    from app.client.leaving import when  # noqa: PLC0415
    from app.client.units import token_text  # noqa: PLC0415  # --help does without

    rows = [
        ("block", f"{found.block}, {when(found.now)}"),
        ("in contract", f"{token_text(found.available)} for this wallet"),
        ("exit", f"{token_text(found.amount)} asked for" if found.amount else "none"),
        ("next", found.next_step()),
    ]
    if found.paused:
        rows.insert(2, ("paused", "deposits and withdrawals; exits work"))
    return rows


def status_document(found: "ExitStatus") -> dict[str, object]:
    """Return an exit as JSON; times are Unix seconds by the chain's clock."""
    from app.client.units import token_text  # noqa: PLC0415  # --help does without

    return {
        "block": found.block,
        "now": found.now,
        "available": token_text(found.available),
        "exit": {
            "amount": token_text(found.amount),
            "ready_at": found.ready_at,
            "lapses_at": found.lapses_at,
            "ripe": found.is_ripe,
        }
        if found.amount
        else None,
        "delay_seconds": found.delay,
        "paused": found.paused,
        "next_step": found.next_step(),
    }
