"""`offpeak wallet new|show|balance`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import (
    DEFAULT_HOME,
    Account,
    Home,
    Json,
    KeystoreFile,
    PasswordFile,
    Url,
)
from app.cli.output import Output

app = typer.Typer(help="Wallets: standard web3 v3 keystore files.", no_args_is_help=True)

CLAIM_SECONDS = 3_600
"""How long a signed claim may be taken."""

Transfer = Annotated[
    str, typer.Argument(help="Its id in `offpeak wallet balance`.", show_default=False)
]
NewFile = Annotated[Path, typer.Argument(help="Where to write it.", show_default=False)]


@app.command(epilog="Example: offpeak wallet new ~/.foundry/keystores/buyer")
def new(file: NewFile, *, password_file: PasswordFile = None, as_json: Json = False) -> None:
    """Make a new key in a new keystore file, mode 0600."""
    import secrets  # noqa: PLC0415  # --help does without

    from app.cli.wallets import new_password, read_password  # noqa: PLC0415
    from app.client.errors import KeystoreExists  # noqa: PLC0415
    from app.client.keystore import write_keystore  # noqa: PLC0415
    from ledger.encoding import checksum_address  # noqa: PLC0415
    from ledger.signing import address_of  # noqa: PLC0415

    output = Output(as_json=as_json)
    if file.exists():
        raise KeystoreExists(file)
    password = read_password(password_file) if password_file else new_password()
    key = secrets.token_bytes(32)
    address = checksum_address(address_of(key))
    write_keystore(file, key, password)
    rows = [("address", address), ("keystore", str(file))]
    output.rows(dict(rows), rows)


@app.command(epilog="Example: offpeak wallet show --keystore ~/.foundry/keystores/buyer")
def show(
    *,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Show the wallet's address. Never its key."""
    from app.cli.buyer import wallet_address  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions, find_keystore  # noqa: PLC0415
    from ledger.encoding import checksum_address  # noqa: PLC0415

    options = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    address = checksum_address(wallet_address(options))
    rows = [("address", address), ("keystore", str(find_keystore(options)))]
    Output(as_json=as_json).rows(dict(rows), rows)


@app.command(epilog="Example: offpeak wallet claim 3f0c...")
def claim(
    transfer: Transfer,
    *,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Have tokens credited that this wallet sent past its deposits; signs a claim of them.

    They are credited when that is final on the chain.
    """
    import secrets  # noqa: PLC0415  # --help does without
    import time  # noqa: PLC0415

    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from app.client.chain_errors import TransferUnknown  # noqa: PLC0415
    from ledger.authorization import SuspenseClaim  # noqa: PLC0415

    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        mine = next((each for each in client.transfers().transfers if each.id == transfer), None)
        if mine is None:
            raise TransferUnknown(transfer)
        message = SuspenseClaim(
            payer=client.wallet.address,
            transaction=bytes.fromhex(mine.transaction[2:]),
            log_index=mine.log_index,
            nonce=secrets.token_bytes(32),
            deadline=int(time.time()) + CLAIM_SECONDS,
        )
        found = client.claim(message).model_dump(mode="json")
    Output(as_json=as_json).rows(found, [(name, str(value)) for name, value in found.items()])


@app.command(epilog="Example: offpeak wallet balance --json")
def balance(
    *,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Show every bucket of a wallet's money and what to do about it.

    Available, held, pending deposits, withdrawals under way, an open exit, plain transfers, and
    what is owed; signs a read access for it.
    """
    from app.cli.balance_view import balance_rows  # noqa: PLC0415
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        found = client.balance()
    Output(as_json=as_json).rows(found.model_dump(mode="json"), balance_rows(found))
