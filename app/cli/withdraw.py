"""`offpeak withdraw`: prepaid money back to the wallet, through the gateway."""

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput
from app.cli.options import (
    DEFAULT_HOME,
    Account,
    Home,
    Json,
    KeystoreFile,
    PasswordFile,
    Rpc,
    Url,
    Yes,
)
from app.cli.output import Output

if TYPE_CHECKING:
    from app.cli.wallets import WalletOptions
    from app.client.withdrawals import Wish, WithdrawalPlan
    from app.treasury.schemas import WithdrawalOut

EXAMPLE = "Example: offpeak withdraw all"
ALL = "all"
SHORT = "withdraw less, or `offpeak withdraw all`; nothing was taken"

Amount = Annotated[
    str, typer.Argument(help="How much, in tokens, or `all` that is available.", show_default=False)
]
MaxFee = Annotated[
    str | None,
    typer.Option(help="Most fee to sign for, in tokens; else half more than it is now."),
]
Wait = Annotated[
    float, typer.Option("--wait", min=0, max=86_400, help="Seconds to wait until it is final.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return once it has been asked for.")]


def withdraw(
    amount: Amount,
    *,
    max_fee: MaxFee = None,
    yes: Yes = False,
    wait: Wait = 1_800,
    no_wait: NoWait = False,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Take prepaid money back to this wallet.

    Shows the fee before it signs; the tokens go to the wallet that signs and nowhere else. Stopping
    to wait stops nothing: `offpeak wallet balance` shows where it is.
    """
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.onchain import confirm, telling_what_goes_on  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from app.client.withdrawals import plan_withdrawal, wait_until_paid  # noqa: PLC0415

    output = Output(as_json=as_json)
    wish = wish_of(amount, max_fee)
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url), short=SHORT) as client:
        plan = plan_withdrawal(client, wish, now=int(time.time()), nonce=secrets.token_bytes(32))
        output.note_rows(plan_rows(plan))
        confirm(question(plan), yes=yes, output=output)
        check_node(wallet, rpc, expected=client.terms.chain_id)
        found = client.withdraw(plan.message)
        output.note(f"asked for: {found.id}")
        if not no_wait:
            with telling_what_goes_on(output, look="offpeak wallet balance"):
                found = wait_until_paid(client, found, wait_seconds=wait, say=output.note)
    output.rows(found.model_dump(mode="json"), found_rows(found))


def wish_of(amount: str, max_fee: str | None) -> "Wish":
    """Return what the options ask for.

    Raises:
        BadAmount, NotBaseUnits: an amount is none. BadInput: a negative one.
    """
    from app.client.units import base_units  # noqa: PLC0415  # --help does without
    from app.client.withdrawals import Wish  # noqa: PLC0415
    from ledger.money import parse_amount  # noqa: PLC0415

    limit = None if max_fee is None else parse_amount(max_fee)
    if limit is not None and limit % 1_000:
        raise BadInput("--max-fee has at most six decimals")
    if amount == ALL:
        return Wish(amount=None, max_fee=limit)
    wanted = parse_amount(amount)
    base_units(wanted)
    return Wish(amount=wanted, max_fee=limit)


def check_node(wallet: "WalletOptions", rpc: str | None, *, expected: int) -> None:
    """Return if the node, where one is known, is of the chain that is signed for.

    Raises:
        WrongChain: it is not; nothing was signed. RpcUnavailable: it does not answer.
    """
    from app.cli.buyer import read_up_file  # noqa: PLC0415  # --help does without
    from app.cli.onchain import rpc_of  # noqa: PLC0415
    from app.client.chain_errors import NoNode  # noqa: PLC0415
    from app.client.errors import WrongChain  # noqa: PLC0415

    try:
        node = rpc_of(rpc, read_up_file(wallet.home))
    except NoNode:
        return  # the gateway's own word has been compared

    async def ask() -> int:
        async with node:
            return await node.chain_id()

    found = asyncio.run(ask())
    if found != expected:
        raise WrongChain(expected=expected, found=found, of="node")


def plan_rows(plan: "WithdrawalPlan") -> list[tuple[str, str]]:
    """Return what is about to be signed."""
    from app.client.leaving import when  # noqa: PLC0415  # --help does without
    from ledger.encoding import checksum_address  # noqa: PLC0415
    from ledger.money import Nano, format_amount  # noqa: PLC0415

    least = Nano(plan.amount - plan.most_fee)
    return [
        ("withdraw", f"{format_amount(plan.amount)} of the token {plan.message.token}"),
        ("fee", f"{format_amount(plan.fee)} now, at most {format_amount(plan.most_fee)}"),
        (
            "receives",
            f"{format_amount(Nano(plan.amount - plan.fee))}, at least {format_amount(least)}",
        ),
        ("to", f"{checksum_address(plan.message.payer)} (this wallet, always)"),
        ("paid by", f"{when(plan.message.deadline)}, or it is available again"),
    ]


def question(plan: "WithdrawalPlan") -> str:
    """Return what the wallet's owner is asked."""
    from ledger.money import format_amount  # noqa: PLC0415  # --help does without

    return (
        f"Sign to withdraw {format_amount(plan.amount)} at a fee of at most"
        f" {format_amount(plan.most_fee)}?"
    )


def found_rows(found: "WithdrawalOut") -> list[tuple[str, str]]:
    """Return where a withdrawal is."""
    rows = [
        ("withdrawal", found.id),
        ("state", found.state),
        ("amount", found.amount),
        ("fee", found.fee),
    ]
    rows += [("transaction", each.hash) for each in found.transactions if each.hash]
    return [*rows, ("next", found.next_action)]
