"""A real chain that a real watcher books from; wallets act on it and off it."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from app.chain.calls import APPROVE, CANCEL_EXIT, FINALIZE_EXIT, MINT, TRANSFER, deposit
from app.chain.calls import request_exit as exit_call
from app.chain.keys import KeystoreKey
from app.chain.rpc import ChainRpc
from app.chain.sending import Outgoing, prepare
from app.chain.transaction import SignedTransaction
from app.treasury.events import OurContracts
from app.treasury.watcher import Watcher, WatcherTerms
from ledger.encoding import Address
from ledger.money import Nano
from ledger.signing import SigningKey
from tests.chain import CHAIN_ID, Contracts, TestChain
from tests.integration.books import Order, Seller
from tests.integration.treasury.house import House, house
from tests.integration.treasury_books import BASE, Money, TreasuryBooks

__all__ = ["house"]

SAFE_LIMIT: Final = 10_000_000
"""What a wallet may be credited before it is final, base units."""


@dataclass
class Wallet:
    """A wallet with a key of its own, gas money and as many tokens as it wants."""

    secret: bytes
    key: SigningKey
    place: Contracts
    rpc: ChainRpc

    @property
    def address(self) -> Address:
        return self.key.address

    async def begin(self, to: Address, data: bytes) -> SignedTransaction:
        """A transaction that is sent and not waited for."""
        who = KeystoreKey(self.secret)
        signed = await who.sign(await prepare(self.rpc, who.address, Outgoing(to=to, data=data)))
        assert (await self.rpc.send_raw(signed.raw)).outcome == "accepted"
        return signed

    async def send(self, to: Address, data: bytes) -> SignedTransaction:
        """A transaction, mined and not reverted, in its signed form."""
        signed = await self.begin(to, data)
        async with asyncio.timeout(20):
            while (receipt := await self.rpc.receipt(signed.hash)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert receipt.succeeded
        return signed

    async def mint(self, amount: int) -> None:
        """Make tokens, and let the treasury take them."""
        await self.send(self.place.token, MINT.data(self.address, amount))
        await self.send(self.place.token, APPROVE.data(self.place.treasury, 1 << 100))

    async def pay_in(self, amount: int, to: Address | None = None) -> SignedTransaction:
        return await self.send(
            self.place.treasury, deposit(to or self.address, amount, secrets.token_bytes(32))
        )

    async def begin_pay_in(self, amount: int) -> SignedTransaction:
        return await self.begin(
            self.place.treasury, deposit(self.address, amount, secrets.token_bytes(32))
        )

    async def transfer(self, amount: int) -> SignedTransaction:
        """Send tokens to the treasury past its deposits."""
        return await self.send(self.place.token, TRANSFER.data(self.place.treasury, amount))

    async def request_exit(self, amount: int) -> SignedTransaction:
        return await self.send(self.place.treasury, exit_call(amount))

    async def begin_exit(self, amount: int) -> SignedTransaction:
        """Ask for an exit and do not wait for it."""
        return await self.begin(self.place.treasury, exit_call(amount))

    async def cancel_exit(self) -> SignedTransaction:
        return await self.send(self.place.treasury, CANCEL_EXIT.data())

    async def finalize_exit(self) -> SignedTransaction:
        return await self.send(self.place.treasury, FINALIZE_EXIT.data())


@dataclass
class Watched:
    """The house, its books and its watcher."""

    house: House
    books: TreasuryBooks
    seller: Seller
    watcher: Watcher = field(init=False)

    def __post_init__(self) -> None:
        self.watcher = self.new_watcher()

    @property
    def chain(self) -> TestChain:
        return self.house.contracts.chain

    def new_watcher(self, rpc: ChainRpc | None = None, *, range_blocks: int = 1_000) -> Watcher:
        place = self.house.contracts
        ours = OurContracts(token=place.token, treasury=place.treasury, anchor=place.anchor)
        terms = WatcherTerms(
            chain_id=CHAIN_ID,
            contracts=ours,
            first_block=place.first_block,
            range_blocks=range_blocks,
            safe_limit=Nano(SAFE_LIMIT * BASE),
        )
        return Watcher(self.house.database, rpc or self.house.rpc, terms)

    def new_wallet(self) -> Wallet:
        """A wallet with gas money and no tokens."""
        secret = secrets.token_bytes(32)
        made = Wallet(secret, SigningKey(secret), self.house.contracts, self.house.rpc)
        self.chain.set_gas_money(made.address, 10**18)
        return made

    async def wallet(self, tokens: int = 1_000_000_000) -> Wallet:
        """A wallet with tokens that it may deposit."""
        made = self.new_wallet()
        await made.mint(tokens)
        return made

    async def look(self) -> bool:
        """One round of the watcher."""
        return await self.watcher.run_once()

    async def finality(self) -> None:
        """Make what happened final, and let the watcher see it."""
        self.chain.finalize()
        assert await self.look()

    def reorg(self, depth: int, *again: SignedTransaction) -> None:
        """Replace blocks; `again` are mined once more, in the first of the new ones."""
        self.chain.reorg(depth, tuple((each.raw, 0) for each in again))

    def act(self, sender: Address, data: bytes) -> None:
        """Call the treasury as anybody, at once and without a key; it must not revert."""
        call = {"from": sender, "to": self.house.contracts.treasury, "data": "0x" + data.hex()}
        self.chain.ask("anvil_impersonateAccount", sender)
        found = self.chain.ask("eth_sendTransaction", call)
        until = time.monotonic() + 10
        while (receipt := self.chain.ask("eth_getTransactionReceipt", found)) is None:
            assert time.monotonic() < until
        assert isinstance(receipt, dict)
        assert receipt["status"] == "0x1"

    # --- off chain --------------------------------------------------------------------------

    def accept(self, wallet: Wallet, amount: int) -> Any:
        """A job's acceptance that holds `amount` base units: its outcome."""
        self.books.one(  # whoever is not heard from goes stale
            "SELECT offpeak.seen_many(ARRAY[%s]::uuid[], ARRAY[%s]::bigint[], ARRAY[0])",
            self.seller.agent_id,
            self.seller.epoch,
        )
        order = Order(
            payer=wallet.address,
            amount=amount * BASE,
            candidates=(self.seller.deployment_id,),
            per_request=amount * BASE,
            asset=self.books.asset,
            run_seconds=600,
        )
        [outcome] = self.books.accept([order])
        return outcome

    def spend(self, wallet: Wallet, amount: int) -> None:
        """Run a job that costs `amount` base units."""
        outcome = self.accept(wallet, amount)
        assert outcome.code == "ok"
        assert self.books.settle([outcome], amount * BASE) == ["ok"]

    # --- looking ----------------------------------------------------------------------------

    def money(self, wallet: Wallet) -> Money:
        """A wallet's buckets; all are whole base units here, and are given in them."""
        found = self.books.money(wallet.address)
        parts = (found.available, found.held, found.owed, found.aside, found.pending)
        assert all(part % BASE == 0 for part in parts)
        available, held, owed, aside, pending = (part // BASE for part in parts)
        return Money(available, held, owed, found.exiting, aside, pending)

    def events(self) -> list[tuple[str, str]]:
        """Kind and state of every stored event, in the chain's order."""
        rows = self.books.rows(
            "SELECT kind, state FROM offpeak.chain_event ORDER BY block_number, log_index, seen_at"
        )
        return [(row.kind, row.state) for row in rows]

    def now(self) -> int:
        """The database's time, Unix seconds."""
        return int(
            self.books.one("SELECT extract(epoch FROM clock_timestamp())::bigint AS now").now
        )

    def cursor(self) -> int | None:
        rows = self.books.rows("SELECT number FROM offpeak.chain_cursor")
        return rows[0].number if rows else None

    async def check(self) -> None:
        """The ledger check is clean, and nobody had to be stopped."""
        assert not self.books.halted()
        await self.house.check_books()


def has(available: int = 0, **parts: int) -> Money:
    """Buckets in base units; what is not named is empty."""
    named = {"held": 0, "owed": 0, "aside": 0, "pending": 0, **parts}
    return Money(available=available, exiting=bool(named.pop("exiting", 0)), **named)


@pytest.fixture
async def watched(house: House) -> AsyncIterator[Watched]:
    books = TreasuryBooks(house.url)
    books.asset = house.contracts.token
    with books:
        yield Watched(house, books, books.seller(256))
