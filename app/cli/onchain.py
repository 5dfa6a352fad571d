"""From options to a wallet on its chain, with or without a gateway."""

import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from app.chain.rpc import ChainRpc, open_rpc
from app.cli.buyer import BuyerOptions, gateway_url, read_up_file, terms_of
from app.cli.errors import Declined
from app.cli.output import Output
from app.cli.wallets import WalletOptions, find_keystore, password_for
from app.client.chain import Step, WalletChain
from app.client.chain_errors import NoNode
from app.client.client import Client
from app.client.keystore import open_keystore
from app.client.transport import ATTEMPTS, Transport
from app.client.units import coin_text
from app.client.wallet import Wallet
from ledger.encoding import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOptions:
    """What the commands that send a wallet's own transactions share."""

    wallet: WalletOptions
    rpc: str | None
    yes: bool
    wait_seconds: float


def chain_options(
    home: Path,
    keystore: Path | None,
    account: str | None,
    password_file: Path | None,
    rpc: str | None,
    *,
    yes: bool = False,
    wait: float = 0,
) -> ChainOptions:
    """Return a command's options as one value."""
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    return ChainOptions(wallet=wallet, rpc=rpc, yes=yes, wait_seconds=wait)


def rpc_of(given: str | None, known: Mapping[str, object]) -> ChainRpc:
    """Return the chain that is meant.

    Raises:
        NoNode: neither the option nor the environment nor a running `offpeak up` names one.
    """
    named = given or str(known.get("rpc_url") or "")
    urls = [url.strip() for url in named.split(",") if url.strip()]
    if not urls:
        raise NoNode
    return open_rpc(urls)


def opened_wallet(options: WalletOptions) -> Wallet:
    """Return the wallet with its key; its password may be asked for."""
    keystore = find_keystore(options)
    return Wallet(open_keystore(keystore, password_for(keystore, options)))


@asynccontextmanager
async def chain_of(options: ChainOptions, wallet: Wallet | Address) -> AsyncIterator[WalletChain]:
    """Yield the wallet's chain and close its connections; an address can only look."""
    known = read_up_file(options.wallet.home)
    async with rpc_of(options.rpc, known) as rpc:
        yield WalletChain(rpc, terms_of(known), wallet)


def gateway_client(options: BuyerOptions, wallet: Wallet, *, attempts: int = ATTEMPTS) -> Client:
    """Return a client of the gateway that is meant, paying with this wallet."""
    known = read_up_file(options.wallet.home)
    transport = Transport(gateway_url(options, known), attempts=attempts)
    return Client(transport, terms_of(known), wallet=wallet)


def gas_row(steps: list[Step], have_wei: int) -> tuple[str, str]:
    """Return what the steps may cost at most, and what the wallet has for it."""
    most = sum(step.most_wei for step in steps)
    return "gas", f"at most {coin_text(most)} native coins; the wallet has {coin_text(have_wei)}"


def confirm(question: str, *, yes: bool, output: Output) -> None:
    """Return if the wallet's owner agrees; Declined otherwise."""
    if yes:
        output.note(question.removesuffix("?"))
        return
    if not sys.stdin.isatty():
        raise Declined
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a loop's waits for an await
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C at the question
        raise Declined from None
    finally:
        signal.signal(signal.SIGINT, before)
    if not agreed:
        raise Declined


@contextmanager
def telling_what_goes_on(output: Output, *, look: str) -> Iterator[None]:
    """Say on Ctrl-C where to see what was already sent; a stop cannot take it back."""
    try:
        yield
    except KeyboardInterrupt:
        output.note(f"stopped; what was already sent goes on: `{look}` shows it")
        raise
