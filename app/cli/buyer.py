"""From options and environment to a client: where to ask, what to sign for, who pays.

What signatures count for (chain, contracts, token) comes from the environment, from the
development gateway of this home, or from the development defaults; never from the gateway asked.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.cli.errors import BadInput
from app.cli.options import DEFAULT_PORT, UP_FILE
from app.cli.wallets import WalletOptions, find_keystore, password_for
from app.client.client import Client
from app.client.errors import ProblemError
from app.client.keystore import keystore_address, open_keystore
from app.client.terms import Terms
from app.client.transport import Transport
from app.client.wallet import Wallet
from ledger.encoding import Address, checksum_address, parse_address
from ledger.errors import BadAddress

DEVELOPMENT_TERMS: Mapping[str, object] = {
    "chain_id": 31_337,
    "token_address": f"0x{1:040x}",
    "treasury_address": f"0x{2:040x}",
    "receipt_anchor_address": f"0x{3:040x}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyerOptions:
    """What the buyer's commands share."""

    wallet: WalletOptions
    url: str | None = None


@contextmanager
def looking(options: BuyerOptions) -> Iterator[Client]:
    """Yield a client that can only look."""
    known = read_up_file(options.wallet.home)
    with Client(Transport(gateway_url(options, known)), terms_of(known)) as client:
        yield client


@contextmanager
def quoting(options: BuyerOptions, payer: str | None) -> Iterator[Client]:
    """Yield a client that quotes for an address: the one given, else the keystore's."""
    known = read_up_file(options.wallet.home)
    transport = Transport(gateway_url(options, known))
    address = parse_address(payer) if payer else wallet_address(options.wallet)
    with Client(transport, terms_of(known), payer=address) as client:
        yield client


@contextmanager
def paying(options: BuyerOptions, *, short: str = "") -> Iterator[Client]:
    """Yield a client with the wallet opened; `short` is the next step when funds do not do."""
    known = read_up_file(options.wallet.home)
    transport = Transport(gateway_url(options, known))
    keystore = find_keystore(options.wallet)
    wallet = Wallet(open_keystore(keystore, password_for(keystore, options.wallet)))
    terms = terms_of(known)
    with Client(transport, terms, wallet=wallet) as client:
        try:
            yield client
        except ProblemError as problem:
            if problem.code == "insufficient-funds":
                problem.next_step = short or funds_step(
                    wallet.address, known, chain_id=terms.chain_id
                )
            raise


def funds_step(wallet: Address, known: Mapping[str, object], *, chain_id: int) -> str:
    """Return how this wallet gets money; only a development gateway gives it away."""
    address = checksum_address(wallet)
    if chain_id == DEVELOPMENT_TERMS["chain_id"]:
        how = "deposited on its own chain" if known.get("rpc_url") else "made up"
        return f"`offpeak dev fund {address}` (development: {how}), or lower --max-tokens"
    return f"`offpeak deposit` more for {address}, or lower --max-tokens"


def wallet_address(options: WalletOptions) -> Address:
    """Return the wallet's address; its password is asked only if the file does not say it."""
    keystore = find_keystore(options)
    address = keystore_address(keystore)
    if address is None:
        return Wallet(open_keystore(keystore, password_for(keystore, options))).address
    return address


def gateway_url(options: BuyerOptions, known: Mapping[str, object]) -> str:
    """Return the gateway to ask."""
    return options.url or str(known.get("url", f"http://127.0.0.1:{DEFAULT_PORT}"))


def terms_of(known: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Terms:
    """Return what is signed for.

    Raises:
        BadInput: a chain id or an address is none.
    """
    environ = os.environ if environ is None else environ

    def value(name: str) -> str:
        given = environ.get(f"OFFPEAK_{name.upper()}")
        return given or str(known.get(name, DEVELOPMENT_TERMS.get(name, "")))

    try:
        signer = value("quote_signer")
        return Terms(
            chain_id=int(value("chain_id")),
            treasury=parse_address(value("treasury_address")),
            receipt_anchor=parse_address(value("receipt_anchor_address")),
            token=parse_address(value("token_address")),
            quote_signer=parse_address(signer) if signer else None,
        )
    except (ValueError, BadAddress) as error:
        raise BadInput(f"OFFPEAK_CHAIN_ID or OFFPEAK_..._ADDRESS: {error}") from None


def read_up_file(home: Path) -> dict[str, object]:
    """Return what the development gateway of this home said, empty when there is none."""
    try:
        known = json.loads((home / UP_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
