"""The all-in-one's own chain: anvil, our contracts on it, and keys made at random for this home.

Where there is no node and no npm to get one with, there is no chain: money is made up then, as it
was. A home that has a chain keeps it over restarts.
"""

import asyncio
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.chain.calls import APPROVE, MINT, deposit
from app.chain.deploy import Deployed, DeployTerms, deploy
from app.chain.keys import KeystoreKey
from app.chain.rpc import open_rpc
from app.chain.sending import Outgoing, prepare, send_and_wait
from app.client.chain import WalletChain
from app.client.deposits import plan_deposit, send_deposit
from app.client.keystore import QUICK_SCRYPT, open_keystore, write_keystore
from app.client.terms import Terms
from app.client.wallet import Wallet
from app.embedded.anvil import AnvilOptions, EmbeddedAnvil, ask_chain
from app.embedded.development import DevelopmentHome
from app.embedded.errors import EmbeddedError, NodeMissing, NpmFailed
from app.embedded.mining import Mining
from app.embedded.weights import Say
from app.kit.clock import utc_now
from ledger.encoding import Address, checksum_address, parse_address
from ledger.money import WEI_PER_COIN
from ledger.signing import SigningKey

CHAIN_FILE: Final = "chain.json"
ROLES: Final = ("admin", "operator", "guardian", "anchor")
KEYS_FOLDER: Final = "keys"
PASSWORD_FILE: Final = "password"  # noqa: S105  # a file's name
GAS_COINS: Final = 10
EXIT_DELAY_SECONDS: Final = 3_600
COMMIT_SECONDS: Final = 30
"""Two of these and the longest job stay below the exit delay."""
POLL_SECONDS: Final = 0.5
PAYOUT_DAY_LIMIT: Final = 1_000_000_000
SEND_SECONDS: Final = 30.0
BASE_UNITS: Final = 1_000
"""Nano of one base unit."""


class ChainMissing(EmbeddedError):
    """This home's money is on a chain that cannot be started here."""

    code = "chain-missing"
    next_step = "install Node.js 20 with npm, set OFFPEAK_ANVIL, or name a new --home"

    def __init__(self, home: Path, *, reason: str) -> None:
        super().__init__(f"{home} has a chain: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DepositMade:
    """What a deposit of the all-in-one did; `amount` in base units."""

    amount: int
    way: str
    transaction: bytes
    block: int
    gas_wei: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DevelopmentChain:
    """A running development chain with our contracts on it."""

    url: str
    deployed: Deployed
    home: DevelopmentHome = field(repr=False)

    def settings(self) -> dict[str, str]:
        """Return what gateway and worker must have set to use it; keys are named by file."""
        deployed = self.deployed
        password = str(self.home.path / KEYS_FOLDER / PASSWORD_FILE)
        found = {
            "OFFPEAK_RPC_URLS": self.url,
            "OFFPEAK_CHAIN_ID": str(deployed.chain_id),
            "OFFPEAK_TOKEN_ADDRESS": checksum_address(deployed.token),
            "OFFPEAK_TREASURY_ADDRESS": checksum_address(deployed.treasury),
            "OFFPEAK_RECEIPT_ANCHOR_ADDRESS": checksum_address(deployed.anchor),
            "OFFPEAK_TREASURY_FIRST_BLOCK": str(deployed.block_number),
            "OFFPEAK_CHAIN_POLL_SECONDS": str(POLL_SECONDS),
            "OFFPEAK_COMMIT_INTERVAL_SECONDS": str(COMMIT_SECONDS),
            "OFFPEAK_ANCHOR_INTERVAL_SECONDS": "0",
            "OFFPEAK_WITHDRAWAL_MINIMUM": "0.000001",
        }
        for role in ("operator", "anchor"):
            found[f"OFFPEAK_{role.upper()}_KEYSTORE"] = str(keystore_of(self.home, role))
            found[f"OFFPEAK_{role.upper()}_PASSWORD_FILE"] = password
        return found

    def deposit(self, wallet_key: bytes, amount: int) -> DepositMade:
        """Give a wallet coins for gas and so many base units of the token; deposit the tokens."""
        wallet = Wallet(wallet_key)
        give_coins(self.url, wallet.address)
        return asyncio.run(self._deposit(wallet, amount))

    def deposit_for(self, beneficiary: Address, amount: int) -> bytes:
        """Make so many base units of the token and deposit them for any wallet.

        Returns:
            The transaction that deposits.
        """
        give_coins(self.url, beneficiary)  # or it could send nothing on its own
        return asyncio.run(self._deposit_for(beneficiary, amount))

    async def _deposit_for(self, beneficiary: Address, amount: int) -> bytes:
        admin, deployed = KeystoreKey(role_key(self.home, "admin")), self.deployed
        token, treasury = deployed.token, deployed.treasury
        async with open_rpc([self.url]) as rpc:

            async def send(to: Address, data: bytes) -> bytes:
                transaction = await prepare(rpc, admin.address, Outgoing(to=to, data=data))
                receipt = await send_and_wait(rpc, admin, transaction, wait_seconds=SEND_SECONDS)
                return receipt.transaction_hash

            await send(token, MINT.data(admin.address, amount))
            await send(token, APPROVE.data(treasury, amount))
            return await send(treasury, deposit(beneficiary, amount, secrets.token_bytes(32)))

    async def _deposit(self, wallet: Wallet, amount: int) -> DepositMade:
        deployed = self.deployed
        terms = Terms(
            chain_id=deployed.chain_id,
            treasury=deployed.treasury,
            receipt_anchor=deployed.anchor,
            token=deployed.token,
        )
        async with open_rpc([self.url]) as rpc:
            admin = KeystoreKey(role_key(self.home, "admin"))
            mint = Outgoing(to=deployed.token, data=MINT.data(wallet.address, amount))
            transaction = await prepare(rpc, admin.address, mint)
            await send_and_wait(rpc, admin, transaction, wait_seconds=SEND_SECONDS)
            chain = WalletChain(rpc, terms, wallet)
            plan = await plan_deposit(
                chain,
                amount,
                way=None,
                ref=secrets.token_bytes(32),
                now=int(utc_now().timestamp()),
            )
            done = await send_deposit(chain, plan, wait_seconds=SEND_SECONDS, say=lambda _: None)
        receipt = done.receipt
        return DepositMade(
            amount=amount,
            way=plan.way,
            transaction=receipt.transaction_hash,
            block=receipt.block_number,
            gas_wei=receipt.gas_used * receipt.gas_price,
        )


@contextmanager
def running_chain(
    home: DevelopmentHome, *, persistent: bool, say: Say
) -> Generator[DevelopmentChain | None]:
    """Yield the home's chain; None where none can be had, or the home was made without one.

    Raises:
        ChainMissing: the home has one, and it cannot be started.
        EmbeddedError, ChainError: it did not start, or the contracts could not be deployed.
    """
    known = home.recall(CHAIN_FILE)
    if known.get("chain_id") is None and (known or home.is_used()):
        say("this home was made without a chain: its money is made up")
        yield None
        return
    try:
        anvil = EmbeddedAnvil.start(AnvilOptions(home=home.path if persistent else None))
    except (NodeMissing, NpmFailed) as error:
        if known:
            raise ChainMissing(home.path, reason=str(error)) from error
        say(f"no chain: {error}; the money is made up")
        home.remember(CHAIN_FILE, {"chain_id": None})
        yield None
        return
    with anvil, Mining(anvil.url):
        found = _known(known) if known else _deployed(home, anvil.url)
        yield DevelopmentChain(url=anvil.url, deployed=found, home=home)


def chain_of_home(home: DevelopmentHome, url: str) -> DevelopmentChain:
    """Return the chain that runs for a home at this URL."""
    return DevelopmentChain(url=url, deployed=_known(home.recall(CHAIN_FILE)), home=home)


def keystore_of(home: DevelopmentHome, role: str) -> Path:
    """Where the key of a role lies."""
    return home.path / KEYS_FOLDER / f"{role}.json"


def role_key(home: DevelopmentHome, role: str) -> bytes:
    """Return the key of a role, making it once; its password is random and lies beside it."""
    folder = home.path / KEYS_FOLDER
    folder.mkdir(exist_ok=True, mode=0o700)
    password = home.make_once(folder / PASSWORD_FILE)
    keystore = keystore_of(home, role)
    if keystore.exists():
        return open_keystore(keystore, password)
    key = secrets.token_bytes(32)
    write_keystore(keystore, key, password, scrypt_cost=QUICK_SCRYPT)
    return key


def give_coins(url: str, address: Address) -> None:
    """Give an address native coins, which a development chain can."""
    ask_chain(url, "anvil_setBalance", (address, hex(GAS_COINS * WEI_PER_COIN)))


def _deployed(home: DevelopmentHome, url: str) -> Deployed:
    """Deploy the contracts and remember where they are."""
    keys = {role: role_key(home, role) for role in ROLES}
    holders = {role: SigningKey(key).address for role, key in keys.items()}
    for address in holders.values():
        give_coins(url, address)
    terms = DeployTerms(
        token=None,
        operator=holders["operator"],
        guardian=holders["guardian"],
        anchor=holders["anchor"],
        admin_delay=0,
        exit_delay=EXIT_DELAY_SECONDS,
        payout_day_limit=PAYOUT_DAY_LIMIT,
        wait_seconds=SEND_SECONDS,
    )

    async def run() -> Deployed:
        async with open_rpc([url]) as rpc:
            return await deploy(rpc, KeystoreKey(keys["admin"]), terms)

    found = asyncio.run(run())
    home.remember(
        CHAIN_FILE,
        {
            "chain_id": found.chain_id,
            "token": found.token,
            "treasury": found.treasury,
            "anchor": found.anchor,
            "block": found.block_number,
        },
    )
    return found


def _known(known: Mapping[str, object]) -> Deployed:
    return Deployed(
        chain_id=int(str(known["chain_id"])),
        token=parse_address(known["token"]),
        treasury=parse_address(known["treasury"]),
        anchor=parse_address(known["anchor"]),
        block_number=int(str(known["block"])),
    )
