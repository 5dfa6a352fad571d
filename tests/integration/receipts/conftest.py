"""A small market whose jobs end at once, and a receipt log over their records."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest

from app.db.engine import Database, open_database
from app.receipts.log import LogReader
from app.receipts.record import RecordSigner
from app.receipts.sequencer import LogTerms, Sequencer
from app.receipts.service import RecordService
from ledger.encoding import Address
from ledger.hashing import sha256
from ledger.log_keys import KeyTable, follow
from ledger.merkle import LogIndex
from ledger.note import NoteSigner
from ledger.onchain import Anchor
from ledger.usage import usage_record_domain
from tests.integration.books import Books, Order, Seller, wallet

ORIGIN = "offpeak.test/receipts"
DOMAIN = usage_record_domain(chain_id=31_337, receipt_anchor=wallet(0xAC))


def seed(name: str) -> bytes:
    """Return 32 bytes of a TEST key."""
    return sha256(f"OFFPEAK TEST key {name}, public, never fund it".encode())


def environment(url: str, *, log_key: str = "log") -> dict[str, str]:
    """Return what a command of the log's operator must have set."""
    return {
        "OFFPEAK_DATABASE_URL": url,
        "OFFPEAK_SIGNING_KEY": seed("record").hex(),
        "OFFPEAK_CHECKPOINT_KEY": seed(log_key).hex(),
        "OFFPEAK_LOG_ORIGIN": ORIGIN,
        "OFFPEAK_CHAIN_ID": str(DOMAIN.chain_id),
        "OFFPEAK_RECEIPT_ANCHOR_ADDRESS": DOMAIN.verifying_contract,
    }


def terms(*, log_key: str = "log", record_key: str = "record") -> LogTerms:
    signer = RecordSigner(seed(record_key), DOMAIN)
    return LogTerms(NoteSigner(ORIGIN, seed(log_key)), Address(signer.key_id), DOMAIN)


@dataclass
class Archive:
    """Sells, ends, signs and seals."""

    books: Books
    database: Database
    seller: Seller
    terms: LogTerms = field(default_factory=terms)
    record_key: str = "record"

    @property
    def reader(self) -> LogReader:
        return LogReader(self.database)

    def sequencer(self, *, limit: int = 1_000) -> Sequencer:
        return Sequencer(self.database, self.terms, limit)

    def end_jobs(self, payer: Address, count: int = 1, *, charge: int = 7) -> list[UUID]:
        """Sell and end jobs of a wallet, completed for `charge`, or failed for 0."""
        self.books.fund(payer, 10 * count)
        orders = [
            Order(
                payer=payer,
                amount=10,
                per_request=charge,
                candidates=(self.seller.deployment_id,),
            )
            for _ in range(count)
        ]
        outcomes = self.books.accept(orders)
        if charge:
            assert set(self.books.settle(outcomes, charge)) == {"ok"}
        else:
            for outcome in outcomes:
                assert self.books.end(outcome.job_id) == "ok"
        return [outcome.job_id for outcome in outcomes]

    def tamper(self, statement: str, *given: object) -> None:
        """Do to stored rows what no role of the application may."""
        self.books.connection.execute("RESET ROLE")
        self.books.connection.execute(statement.encode(), given)

    async def sign(self, limit: int = 10_000) -> int:
        signer = RecordSigner(seed(self.record_key), DOMAIN)
        return await RecordService(self.database, signer).sign_unsigned(limit)

    async def seal(self, payer: Address, count: int = 1) -> list[UUID]:
        """End, sign, seal and publish jobs; return their ids."""
        ids = self.end_jobs(payer, count)
        await self.sign()
        await self.sequencer().run_once()
        return ids

    def anchor(self, size: int, *, root: bytes | None = None) -> Anchor:
        """Book that the checkpoint of a size is anchored, with its own root by default."""
        books = self.books
        books.connection.execute("RESET ROLE")
        found = books.one("SELECT root FROM offpeak.log_checkpoint WHERE size = %s", size)
        anchored = Anchor(
            chain_id=DOMAIN.chain_id,
            contract=DOMAIN.verifying_contract,
            size=size,
            root=found.root if root is None else root,
            tx_hash=seed(f"transaction {size}"),
            block_number=100 + size,
            block_hash=seed(f"block {size}"),
            log_index=3,
        )
        event = uuid4()
        self.tamper(
            "INSERT INTO offpeak.chain_event(id, chain_id, block_number, block_hash, tx_hash,"
            " log_index, mined_at, kind, payer, amount, ref, extra, state, seen_at, booked_at)"
            " VALUES (%s, %s, %s, %s, %s, 3, now(), 'published', '', 0, %s, '{}', 'booked', now(),"
            " now())",
            event, anchored.chain_id, anchored.block_number, anchored.block_hash,
            anchored.tx_hash, anchored.root,
        )  # fmt: skip
        self.tamper(
            "INSERT INTO offpeak.anchor VALUES (%s, %s, %s, now())", size, anchored.root, event
        )
        return anchored

    async def followed_keys(self) -> KeyTable:
        """Return the keys as anyone finds them who trusts the first one."""
        trusted = NoteSigner(ORIGIN, seed("log")).verifier
        table = None
        for index in range((await self.reader.checkpoint()).size):
            entry = await self.reader.entry(index)
            if entry.kind == "key-rotation":
                table = follow(table, entry.entry, index=LogIndex(index), trusted=[trusted])
        assert table is not None
        return table


@pytest.fixture
async def archive(fresh_database_url: str) -> AsyncIterator[Archive]:
    database = open_database(fresh_database_url, pool_size=4)
    with Books(fresh_database_url) as books:
        yield Archive(books, database, books.seller(10_000))
    await database.dispose()
