"""`offpeak treasury deploy|status|pause|unpause`: for the operator; see also its transactions."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput, TreasuryMismatch
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
from app.cli.treasury_transactions import abandon, transactions

if TYPE_CHECKING:
    from app.chain.deploy import Deployed, DeployTerms
    from app.chain.rpc import ChainRpc
    from app.cli.onchain import ChainOptions
    from app.treasury.status import TreasuryStatus
    from ledger.encoding import Address

app = typer.Typer(help="The treasury contract, for its operator.", no_args_is_help=True)

DAY_SECONDS = 86_400
TOKEN_DECIMALS = 6

app.command(epilog="Example: offpeak treasury transactions --json")(transactions)
app.command(
    epilog="Example: offpeak treasury abandon --stuck --because 'nonce 7 was ours by hand'"
)(abandon)

Operator = Annotated[str, typer.Option(help="Address of the key that withdraws and commits.")]
Guardian = Annotated[str, typer.Option(help="Address of the key that may pause.")]
Anchor = Annotated[str, typer.Option(help="Address of the key that anchors the receipt log.")]
Admin = Annotated[
    str | None,
    typer.Option(help="Lasting admin, who has to accept; the deploying key without it."),
]
Token = Annotated[
    str | None, typer.Option(help="The settlement token, of six decimals, with permit.")
]
MockToken = Annotated[
    bool, typer.Option("--mock-token", help="Deploy a token that anybody can mint: tests only.")
]
ExitDelay = Annotated[
    int, typer.Option(min=3_600, max=30 * DAY_SECONDS, help="Seconds until an exit is ripe.")
]
AdminDelay = Annotated[
    int, typer.Option(min=0, max=30 * DAY_SECONDS, help="Seconds that a new admin waits.")
]
DayLimit = Annotated[str, typer.Option(help="Most that may be paid to suppliers in a day.")]


@app.command(epilog="Example: offpeak treasury status --json")
def status(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Compare chain and books at a final block, and show what waits.

    Tokens, liabilities and events must agree to the unit; exit code 10 when they do not.
    """
    from app.cli.treasury_view import status_document, status_lines  # noqa: PLC0415

    output = Output(as_json=as_json)
    found = asyncio.run(read_status(home))
    if as_json:
        output.show(status_document(found))
    else:
        for line in status_lines(found):
            output.write(line)
    if not found.holds:
        raise TreasuryMismatch("; ".join(alarm.detail for alarm in found.alarms()))


@app.command(
    epilog="Example: offpeak treasury deploy --token 0x.. --operator 0x.. --guardian 0x.."
    " --anchor 0x.."
)
def deploy(
    *,
    operator: Operator,
    guardian: Guardian,
    anchor: Anchor,
    token: Token = None,
    mock_token: MockToken = False,
    admin: Admin = None,
    exit_delay: ExitDelay = DAY_SECONDS,
    admin_delay: AdminDelay = 2 * DAY_SECONDS,
    payout_day_limit: DayLimit = "10000",
    yes: Yes = False,
    wait: Mined = 300,
    rpc: Rpc = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Deploy treasury and receipt anchor from a keystore, and grant the roles.

    Prints the addresses as settings. docs/how-to/deploy-on-a-test-network.md goes through it.
    """
    from app.chain.deploy import DeployTerms  # noqa: PLC0415  # --help does without
    from app.cli.onchain import chain_options  # noqa: PLC0415
    from app.client.units import base_units  # noqa: PLC0415
    from ledger.encoding import parse_address  # noqa: PLC0415
    from ledger.money import parse_amount  # noqa: PLC0415

    if mock_token == (token is not None):
        raise BadInput("name --token ADDRESS, or --mock-token on a test network")
    terms = DeployTerms(
        token=parse_address(token) if token else None,
        operator=parse_address(operator),
        guardian=parse_address(guardian),
        anchor=parse_address(anchor),
        admin=parse_address(admin) if admin else None,
        admin_delay=admin_delay,
        exit_delay=exit_delay,
        payout_day_limit=base_units(parse_amount(payout_day_limit)),
        wait_seconds=wait,
    )
    options = chain_options(home, keystore, account, password_file, rpc, yes=yes, wait=wait)
    output = Output(as_json=as_json)
    found = asyncio.run(deployed(options, terms, output))
    rows = settings_rows(found)
    if as_json:
        output.show({**dict(rows), "block": found.block_number})
    else:
        for name, value in rows:
            output.write(f"{name}={value}")


@app.command(epilog="Example: offpeak treasury pause --account guardian")
def pause(
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
    """Stop deposits, withdrawals, commitments and payouts; exits go on. For the guardian's key."""
    from app.chain.calls import PAUSE  # noqa: PLC0415  # --help does without
    from app.cli.onchain import chain_options  # noqa: PLC0415

    options = chain_options(home, keystore, account, password_file, rpc, yes=yes, wait=wait)
    call(options, "pause the treasury", PAUSE.data(), Output(as_json=as_json))


@app.command(epilog="Example: offpeak treasury unpause --account admin")
def unpause(
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
    """Let everything go on again. For the admin's key."""
    from app.chain.calls import UNPAUSE  # noqa: PLC0415  # --help does without
    from app.cli.onchain import chain_options  # noqa: PLC0415

    options = chain_options(home, keystore, account, password_file, rpc, yes=yes, wait=wait)
    call(options, "unpause the treasury", UNPAUSE.data(), Output(as_json=as_json))


def call(options: "ChainOptions", what: str, data: bytes, output: Output) -> None:
    """Show, ask and send one call of the treasury, by a role's key."""
    rows = asyncio.run(called(options, what, data, output))
    output.rows(dict(rows), rows)


async def called(
    options: "ChainOptions", what: str, data: bytes, output: Output
) -> list[tuple[str, str]]:
    """Return what was sent."""
    from app.cli.onchain import chain_of, confirm, gas_row, opened_wallet  # noqa: PLC0415
    from ledger.encoding import checksum_address  # noqa: PLC0415

    async with chain_of(options, opened_wallet(options.wallet)) as chain:
        await chain.check_contracts()
        step = await chain.plan(what, chain.terms.treasury, data)
        have = await chain.check_gas([step])
        who = [
            ("treasury", checksum_address(chain.terms.treasury)),
            ("by", checksum_address(chain.address)),
        ]
        output.note_rows([*who, gas_row([step], have)])
        confirm(f"{what.capitalize()}?", yes=options.yes, output=output)
        done = await chain.send(step, wait_seconds=options.wait_seconds, say=output.note)
    return [
        *who,
        ("transaction", "0x" + done.receipt.transaction_hash.hex()),
        ("block", str(done.receipt.block_number)),
    ]


async def deployed(options: "ChainOptions", terms: "DeployTerms", output: Output) -> "Deployed":
    """Show, ask and deploy."""
    from app.chain import deploy as contracts  # noqa: PLC0415  # --help does without
    from app.chain.keys import KeystoreKey  # noqa: PLC0415
    from app.cli.buyer import read_up_file  # noqa: PLC0415
    from app.cli.onchain import confirm, rpc_of  # noqa: PLC0415
    from app.cli.wallets import find_keystore, password_for  # noqa: PLC0415
    from app.client.keystore import open_keystore  # noqa: PLC0415
    from app.client.units import coin_text  # noqa: PLC0415
    from ledger.encoding import checksum_address  # noqa: PLC0415

    keystore = find_keystore(options.wallet)
    key = KeystoreKey(open_keystore(keystore, password_for(keystore, options.wallet)))
    async with rpc_of(options.rpc, read_up_file(options.wallet.home)) as rpc:
        chain_id = await rpc.chain_id()
        await require_deployable(rpc, key.address, terms.token)
        rows = [
            ("chain", str(chain_id)),
            ("deployer", checksum_address(key.address)),
            ("coins", coin_text(await rpc.balance(key.address))),
            ("token", checksum_address(terms.token) if terms.token else "a new one for tests"),
            ("operator", checksum_address(terms.operator)),
            ("guardian", checksum_address(terms.guardian)),
            ("anchor", checksum_address(terms.anchor)),
            ("admin", checksum_address(terms.admin or key.address)),
            ("exit delay", f"{terms.exit_delay} s"),
        ]
        output.note_rows(rows)
        confirm(f"Deploy on chain {chain_id}?", yes=options.yes, output=output)
        return await contracts.deploy(rpc, key, terms, say=output.note)


async def require_deployable(rpc: "ChainRpc", deployer: "Address", token: "Address | None") -> None:
    """Return when the deployer can pay for the gas and the token is one of six decimals.

    Raises:
        GasMissing, BadInput: before anything is asked or sent.
    """
    from app.chain.contracts import TokenContract  # noqa: PLC0415  # --help does without
    from app.chain.deploy import DEPLOYMENT_GAS  # noqa: PLC0415
    from app.chain.errors import MalformedAnswer, RpcRefused  # noqa: PLC0415
    from app.client.chain_errors import GasMissing  # noqa: PLC0415

    prices = await rpc.fees()
    need = DEPLOYMENT_GAS * (prices.base + prices.priority)
    have = await rpc.balance(deployer)
    if have < need:
        raise GasMissing(deployer, need_wei=need, have_wei=have)
    if token is None:
        return
    try:
        decimals = await TokenContract(rpc, token).decimals("latest")
    except (MalformedAnswer, RpcRefused):
        decimals = None
    if decimals != TOKEN_DECIMALS:
        raise BadInput(
            f"{token} is no token of {TOKEN_DECIMALS} decimals on this chain: name another one,"
            " or --mock-token on a test network"
        )


def settings_rows(found: "Deployed") -> list[tuple[str, str]]:
    """Return the addresses as settings."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without

    return [
        ("OFFPEAK_CHAIN_ID", str(found.chain_id)),
        ("OFFPEAK_TOKEN_ADDRESS", checksum_address(found.token)),
        ("OFFPEAK_TREASURY_ADDRESS", checksum_address(found.treasury)),
        ("OFFPEAK_TREASURY_FIRST_BLOCK", str(found.block_number)),
        ("OFFPEAK_RECEIPT_ANCHOR_ADDRESS", checksum_address(found.anchor)),
    ]


async def read_status(home: Path) -> "TreasuryStatus":
    """Read the books with the settings' database and the chain with their nodes."""
    from app.cli.server import reader_database, sending_keys  # noqa: PLC0415
    from app.treasury.errors import ChainNotConfigured  # noqa: PLC0415
    from app.treasury.parts import chain_of, status_terms  # noqa: PLC0415
    from app.treasury.status_reader import StatusReader  # noqa: PLC0415

    async with reader_database(home) as (database, settings):
        chain = chain_of(settings)
        if chain is None:
            raise ChainNotConfigured
        async with chain:
            terms = status_terms(settings, sending_keys(settings))
            return await StatusReader(database, chain, terms).read()
