"""`offpeak deposit`: tokens into the treasury; a node and the wallet are enough."""

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.errors import BadInput
from app.cli.options import (
    DEFAULT_HOME,
    Account,
    Home,
    Json,
    KeystoreFile,
    Mined,
    PasswordFile,
    Rpc,
    Url,
    Yes,
)
from app.cli.output import Output

if TYPE_CHECKING:
    from app.cli.buyer import BuyerOptions
    from app.cli.onchain import ChainOptions
    from app.client.client import Client
    from app.client.deposits import Way
    from app.client.wallet import Wallet
    from app.wallets.schemas import BalanceOut

EXAMPLE = "Example: offpeak deposit 5"

Amount = Annotated[
    str, typer.Argument(help="How much, in the settlement token: 5 or 0.25.", show_default=False)
]
Permit = Annotated[bool, typer.Option("--permit", help="Sign an EIP-2612 permit.")]
Authorization = Annotated[
    bool, typer.Option("--authorization", help="Sign an EIP-3009 authorization.")
]
Approve = Annotated[bool, typer.Option("--approve", help="Approve, then deposit: two steps.")]


def deposit(
    amount: Amount,
    *,
    authorization: Authorization = False,
    permit: Permit = False,
    approve: Approve = False,
    yes: Yes = False,
    wait: Mined = 300,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Deposit tokens: they become this wallet's balance here.

    Shows what the gas may cost and asks; then waits until it is mined and, where the gateway
    answers, credited. Without an option the best way that the token has is taken.
    """
    from app.cli.buyer import BuyerOptions  # noqa: PLC0415  # --help does without
    from app.cli.onchain import (  # noqa: PLC0415
        ChainOptions,
        gateway_client,
        opened_wallet,
        telling_what_goes_on,
    )
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from app.client.units import base_units  # noqa: PLC0415
    from ledger.money import parse_amount  # noqa: PLC0415

    output = Output(as_json=as_json)
    way = chosen_way(authorization=authorization, permit=permit, approve=approve)
    base = base_units(parse_amount(amount))
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    options = ChainOptions(wallet=wallet, rpc=rpc, yes=yes, wait_seconds=wait)
    opened = opened_wallet(wallet)
    buyer = BuyerOptions(wallet=wallet, url=url)
    before = balance_before(buyer, opened)
    with telling_what_goes_on(output, look="offpeak wallet balance"):
        document = asyncio.run(deposited(options, opened, base, way, output))
        document["credited"] = None
        if before is None:
            output.note("no gateway was reached: it is credited once one has seen it")
        else:
            client = gateway_client(buyer, opened)
            document["credited"] = credited(client, document, before, wait, output)
    rows = [(name.replace("_", " "), str(value)) for name, value in document.items()]
    output.rows(document, [row for row in rows if row[1] != "None"])


def chosen_way(*, authorization: bool, permit: bool, approve: bool) -> "Way | None":
    """Return the way that the options name, None for the best; BadInput for several."""
    from app.client.deposits import Way  # noqa: PLC0415  # --help does without

    named = [
        way
        for way, given in (
            (Way.AUTHORIZATION, authorization),
            (Way.PERMIT, permit),
            (Way.APPROVAL, approve),
        )
        if given
    ]
    if len(named) > 1:
        raise BadInput("only one of --authorization, --permit and --approve")
    return named[0] if named else None


async def deposited(
    options: "ChainOptions", wallet: "Wallet", amount: int, way: "Way | None", output: Output
) -> dict[str, Any]:
    """Plan, show, ask, send; return what was done as JSON."""
    from app.cli.onchain import chain_of, confirm, gas_row  # noqa: PLC0415  # --help does without
    from app.client.deposits import plan_deposit, send_deposit  # noqa: PLC0415
    from app.client.units import token_text  # noqa: PLC0415
    from ledger.encoding import checksum_address  # noqa: PLC0415

    async with chain_of(options, wallet) as chain:
        ref = secrets.token_bytes(32)
        plan = await plan_deposit(chain, amount, way=way, ref=ref, now=int(time.time()))
        shown = [
            ("wallet", checksum_address(chain.address)),
            ("deposit", f"{token_text(amount)} of the token {checksum_address(chain.terms.token)}"),
            ("into", f"{checksum_address(chain.terms.treasury)} (the treasury)"),
            ("chain", str(chain.terms.chain_id)),
            ("by", f"{plan.way}: " + ", then ".join(step.what for step in plan.steps)),
            gas_row(plan.steps, await chain.rpc.balance(chain.address)),
        ]
        output.note_rows(shown)
        confirm(f"Deposit {token_text(amount)}?", yes=options.yes, output=output)
        done = await send_deposit(chain, plan, wait_seconds=options.wait_seconds, say=output.note)
    return {
        "wallet": checksum_address(wallet.address),
        "amount": token_text(amount),
        "way": str(plan.way),
        "ref": "0x" + ref.hex(),
        "transaction": "0x" + done.receipt.transaction_hash.hex(),
        "block": done.receipt.block_number,
        "gas_wei": done.receipt.gas_used * done.receipt.gas_price,
    }


def balance_before(options: "BuyerOptions", wallet: "Wallet") -> "BalanceOut | None":
    """Return the balance before the deposit; None when no gateway answers or it knows us not."""
    from app.cli.onchain import gateway_client  # noqa: PLC0415  # --help does without
    from app.client.errors import ClientError  # noqa: PLC0415

    try:
        with gateway_client(options, wallet, attempts=1) as client:
            return client.balance()
    except ClientError:
        return None


def credited(
    client: "Client", document: dict[str, Any], before: "BalanceOut", wait: float, output: Output
) -> bool:
    """Wait until the gateway has credited the deposit; StillWaiting when that takes too long."""
    from app.client.chain_errors import StillWaiting  # noqa: PLC0415  # --help does without
    from app.client.crediting import wait_until_credited  # noqa: PLC0415

    transaction = bytes.fromhex(str(document["transaction"])[2:])
    with client:
        if wait_until_credited(
            client, transaction, before=before, wait_seconds=wait, say=output.note
        ):
            output.note("credited")
            return True
    raise StillWaiting("not credited yet", waited_seconds=wait, look="offpeak wallet balance")
