"""A treasury on a real chain with a real database under it: wallets pay in, we pay out."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from app.chain.calls import APPROVE, BLACKLIST, MINT, PAUSE, UNPAUSE, deposit
from app.chain.contracts import TokenContract, TreasuryContract
from app.chain.events import TREASURY_EVENTS, Withdrawn
from app.chain.keys import KeystoreKey
from app.chain.rpc import ChainRpc, open_rpc
from app.chain.sending import Outgoing, prepare
from app.db.engine import TREASURY_ROLE, Database, open_database
from app.finance.check import LedgerCheck
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from app.treasury.chain_view import ChainView
from app.treasury.events import OurContracts
from app.treasury.passage import Round
from app.treasury.sender import OPERATOR_PURPOSES, Sender, SenderTerms
from app.treasury.transaction import Rules
from app.treasury.watcher import Watcher, WatcherTerms
from app.treasury.withdrawal import StoredWithdrawal, WithdrawalTerms
from app.treasury.withdrawals import WithdrawalLoop, WithdrawalService
from app.wallets.signatures import WalletSignatures
from ledger.authorization import Withdrawal, authorization_domain
from ledger.encoding import Address, Domain
from ledger.money import Nano
from ledger.signing import SigningKey
from tests.chain import ADMIN, CHAIN_ID, GUARDIAN, OPERATOR, TEST_KEYS, Contracts, address_of_key

FUNDS = 50_000_000
"""What a new wallet has in the treasury, base units."""
PATIENT = Rules(
    replace_after=timedelta(hours=1),
    rebroadcast_after=timedelta(seconds=0),
    fee_cap=10**12,
    retry_first=timedelta(0),
    retry_most=timedelta(0),
    gas_retry=timedelta(0),
)


def ids() -> IdSource:
    return IdSource(now_ms=unix_ms, random_bytes=secrets.token_bytes)


def operator_sender(database: Database, rpc: ChainRpc, rules: Rules = PATIENT) -> Sender:
    terms = SenderTerms(chain_id=CHAIN_ID, purposes=OPERATOR_PURPOSES, rules=rules)
    return Sender(database, rpc, KeystoreKey(TEST_KEYS[OPERATOR]), terms)


def withdrawal_loop(database: Database, rpc: ChainRpc, treasury: Address) -> WithdrawalLoop:
    return WithdrawalLoop(
        database=database,
        rpc=rpc,
        chain_id=CHAIN_ID,
        treasury=treasury,
        operator=address_of_key(OPERATOR),
        ids=ids(),
    )


@dataclass
class House:
    """Our side on one database: the sender, the loops, and what a test may look at."""

    contracts: Contracts
    url: str
    rpc: ChainRpc
    app: Database
    database: Database
    watcher: Watcher
    rules: Rules = field(default_factory=lambda: PATIENT)

    def sender(self, *, rpc: ChainRpc | None = None, rules: Rules | None = None) -> Sender:
        return operator_sender(self.database, rpc or self.rpc, rules or self.rules)

    def withdrawals(self, *, rpc: ChainRpc | None = None) -> WithdrawalLoop:
        return withdrawal_loop(self.database, rpc or self.rpc, self.contracts.treasury)

    def service(self, *, gas_token_price: int = 0, minimum: int = 1_000) -> WithdrawalService:
        view = ChainView(self.rpc, Nano(gas_token_price), lambda: 0.0)
        return WithdrawalService(
            database=self.app,
            signatures=WalletSignatures(),
            view=view,
            terms=WithdrawalTerms(token=self.contracts.token, minimum=Nano(minimum)),
            domain=self.domain,
            ids=ids(),
        )

    @property
    def domain(self) -> Domain:
        return authorization_domain(chain_id=CHAIN_ID, treasury=self.contracts.treasury)

    def dead_rpc(self) -> ChainRpc:
        """A client of a node that is not there."""
        return open_rpc(["http://127.0.0.1:9"])

    # --- wallets and people -----------------------------------------------------------------

    async def act(self, key: bytes | int, to: Address, data: bytes) -> None:
        """Send a transaction of somebody else's and see it mined."""
        who = KeystoreKey(TEST_KEYS[key] if isinstance(key, int) else key)
        outgoing = await prepare(self.rpc, who.address, Outgoing(to=to, data=data))
        signed = await who.sign(outgoing)
        assert (await self.rpc.send_raw(signed.raw)).outcome == "accepted"
        async with asyncio.timeout(20):
            while (receipt := await self.rpc.receipt(signed.hash)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert receipt.succeeded

    async def new_wallet(self, amount: int = FUNDS) -> SigningKey:
        """A wallet with money in the treasury and in the ledger."""
        secret = secrets.token_bytes(32)
        wallet = SigningKey(secret)
        place = self.contracts
        self.contracts.chain.set_gas_money(wallet.address, 10**18)
        await self.act(secret, place.token, MINT.data(wallet.address, amount))
        await self.act(secret, place.token, APPROVE.data(place.treasury, amount))
        await self.act(secret, place.treasury, deposit(wallet.address, amount, bytes(32)))
        self.contracts.chain.finalize()
        await self.book()
        return wallet

    async def pause(self) -> None:
        await self.act(GUARDIAN, self.contracts.treasury, PAUSE.data())

    async def unpause(self) -> None:
        await self.act(ADMIN, self.contracts.treasury, UNPAUSE.data())

    async def deny(self, wallet: Address) -> None:
        await self.act(ADMIN, self.contracts.token, BLACKLIST.data(wallet, True))

    async def tokens(self, holder: Address) -> int:
        return await TokenContract(self.rpc, self.contracts.token).balance_of(holder, "latest")

    @property
    def treasury(self) -> TreasuryContract:
        return TreasuryContract(self.rpc, self.contracts.treasury)

    # --- withdrawals ------------------------------------------------------------------------

    def message(self, wallet: SigningKey, amount: int, **given: Any) -> Withdrawal:
        fields = {
            "payer": wallet.address,
            "token": self.contracts.token,
            "amount": amount,
            "max_fee": 0,
            "nonce": secrets.token_bytes(32),
            "deadline": int(datetime.now(UTC).timestamp()) + 3_600,
            **given,
        }
        return Withdrawal(**fields)

    def signed(self, wallet: SigningKey, message: Withdrawal) -> str:
        return "0x" + wallet.sign(message.digest(self.domain)).hex()

    async def ask(self, wallet: SigningKey, amount: int, **given: Any) -> StoredWithdrawal:
        message = self.message(wallet, amount, **given)
        return await self.service().request(message.message(), self.signed(wallet, message))

    # --- rounds -----------------------------------------------------------------------------

    async def round(self) -> Round:
        """What every worker does: begin, send, finalize, book."""
        await self.withdrawals().run_once()
        work = await self.sender().run_once()
        self.contracts.chain.finalize()
        await self.book()
        return work

    async def settle(self, rounds: int = 8) -> None:
        for _ in range(rounds):
            await self.round()

    async def book(self) -> None:
        """Store and book what has happened, as every worker does; all of it up to the final."""
        assert await self.watcher.run_once(), self.watcher.health

    # --- looking ----------------------------------------------------------------------------

    def connection(self, role: str = "offpeak_app") -> psycopg.Connection[Any]:
        connection = psycopg.connect(self.url, autocommit=True, row_factory=namedtuple_row)
        connection.execute(f"SET ROLE {role}".encode())
        return connection

    def rows(self, query: str, *values: object) -> list[Any]:
        with self.connection() as connection:
            return connection.execute(query.encode(), values).fetchall()

    def transactions(self) -> list[Any]:
        return self.rows("SELECT * FROM offpeak.chain_transaction ORDER BY id")

    def withdrawal(self, withdrawal_id: UUID) -> Any:
        [row] = self.rows("SELECT * FROM offpeak.withdrawal WHERE id = %s", withdrawal_id)
        return row

    def available(self, wallet: SigningKey) -> int:
        [row] = self.rows(
            "SELECT w.available FROM offpeak.wallet_balance w"
            " JOIN offpeak.account a ON a.id = w.account_id WHERE a.owner = %s",
            wallet.address,
        )
        return int(row.available)

    async def payments(self, wallet: Address) -> list[int]:
        """Amounts of every Withdrawn event of a wallet on the chain."""
        head = self.contracts.chain.height()
        logs = await self.rpc.logs([self.contracts.treasury], 1, head)
        events = [TREASURY_EVENTS.decode(log) for log in logs]
        return [e.amount for e in events if isinstance(e, Withdrawn) and e.payer == wallet]

    async def check_books(self) -> None:
        report = await LedgerCheck(self.app).run()
        assert report.is_clean, [each for each in report.findings if each.count]


@pytest.fixture
async def house(contracts: Contracts, fresh_database_url: str) -> AsyncIterator[House]:
    rpc = open_rpc([contracts.chain.url])
    app = open_database(fresh_database_url, pool_size=8)
    database = open_database(fresh_database_url, pool_size=8, role=TREASURY_ROLE)
    terms = WatcherTerms(
        chain_id=CHAIN_ID,
        contracts=OurContracts(
            token=contracts.token, treasury=contracts.treasury, anchor=contracts.anchor
        ),
        first_block=contracts.first_block,
        range_blocks=10_000,
        safe_limit=Nano(0),
    )
    watcher = Watcher(database, rpc, terms)
    made = House(contracts, fresh_database_url, rpc, app, database, watcher)
    before = contracts.chain.ask("evm_snapshot")
    yield made
    contracts.chain.resume_mining()
    contracts.chain.ask("anvil_dropAllTransactions")
    contracts.chain.ask("evm_revert", before)
    await rpc.aclose()
    await app.dispose()
    await database.dispose()
