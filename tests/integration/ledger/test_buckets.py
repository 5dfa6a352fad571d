"""Every bucket of a wallet against what the chain and the books say, after random events."""

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.db.engine import open_database
from app.finance.reconcile import Reconciler
from app.finance.reconciliation import Position
from app.wallets.balance import Balance, Heads
from app.wallets.repository import WalletRepository
from ledger.encoding import uuid_bytes32
from ledger.money import Nano
from tests.integration.books import ASSET, Order, Seller, wallet
from tests.integration.treasury_books import BASE, CHAIN, Seen, TreasuryBooks

BUYER, OTHER = wallet(1), wallet(2)
LATER = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
LIMIT = Nano(8 * BASE)


@pytest.fixture
def books(fresh_database_url: str) -> Iterator[TreasuryBooks]:
    with TreasuryBooks(fresh_database_url) as books:
        yield books
        assert books.broken_rules() == []


def shown(url: str, heads: Heads | None = None) -> Balance:
    async def read() -> Balance:
        database = open_database(url, pool_size=1)
        try:
            async with database.snapshot() as view:
                return await WalletRepository(view).whole_balance(
                    BUYER, asset=ASSET, safe_limit=LIMIT, heads=heads
                )
        finally:
            await database.dispose()

    return asyncio.run(read())


def where_the_money_is(url: str) -> Position:
    async def read() -> Position:
        database = open_database(url, pool_size=1)
        try:
            [position] = (await Reconciler(database).run()).positions
            return position
        finally:
            await database.dispose()

    return asyncio.run(read())


class Life:
    """One wallet's random life; `net` is what it put in less what left it, in base units."""

    def __init__(self, books: TreasuryBooks, seller: Seller, chance: random.Random) -> None:
        self.books = books
        self.seller = seller
        self.chance = chance
        self.net = 0
        self.seen: list[tuple[UUID, int]] = []
        self.booked: list[tuple[UUID, int]] = []
        self.jobs: list[tuple[Any, int]] = []
        self.pending: list[tuple[UUID, bytes, int]] = []

    def deposit(self) -> None:
        amount = self.chance.randint(1, 9)
        event = self.books.see(Seen("deposited", BUYER, amount, self.books.next_block()))
        self.seen.append((event, amount))
        self.net += amount

    def credit(self) -> None:
        if self.seen:
            event, amount = self.seen.pop(self.chance.randrange(len(self.seen)))
            assert self.books.book(event) == "ok"
            self.booked.append((event, amount))

    def reorganize(self) -> None:
        if self.booked:
            event, amount = self.booked.pop()
            assert self.books.orphan(event) == "ok"
            self.net -= amount

    def transfer(self) -> None:
        amount = self.chance.randint(1, 9)
        event = self.books.see(Seen("plain-transfer", BUYER, amount, self.books.next_block()))
        if self.chance.random() < 0.5:
            self.books.book(event)
        self.net += amount

    def accept(self) -> None:
        amount = self.chance.randint(1, 6)
        order = Order(payer=BUYER, amount=amount * BASE, candidates=(self.seller.deployment_id,))
        [row] = self.books.accept([order])
        if row.code == "ok":
            self.jobs.append((row, amount))

    def settle(self) -> None:
        if self.jobs:
            row, amount = self.jobs.pop()
            charge = self.chance.randint(0, amount)
            assert self.books.settle([row], charge * BASE) == ["ok"]
            self.net -= charge

    def withdraw(self) -> None:
        amount = self.chance.randint(2, 6)
        asked = self.books.withdraw(BUYER, amount, fee=1)
        if asked.code == "ok":
            self.pending.append((asked.id, asked.digest, amount))

    def pay(self) -> None:
        if self.pending:
            identifier, digest, amount = self.pending.pop()
            if self.chance.random() < 0.5:
                self.books.happened("withdrawn", BUYER, amount, ref=digest, fee=1)
                self.net -= amount
            else:
                assert self.books.fail(identifier) == "ok"

    def ask_exit(self) -> None:
        self.books.happened("exit-requested", BUYER, self.chance.randint(1, 9), ready_at=LATER)

    def cancel_exit(self) -> None:
        self.books.happened("exit-cancelled", BUYER, 0)


STEPS = (
    Life.deposit,
    Life.credit,
    Life.reorganize,
    Life.transfer,
    Life.accept,
    Life.settle,
    Life.withdraw,
    Life.pay,
    Life.ask_exit,
    Life.cancel_exit,
)


@pytest.mark.parametrize("seed", range(3))
def test_the_buckets_never_overlap_and_leave_nothing_out(
    books: TreasuryBooks, fresh_database_url: str, seed: int
) -> None:
    chance = random.Random(seed)
    life = Life(books, books.seller(8, ask=1), chance)
    life.deposit()
    life.credit()
    for _ in range(60):
        chance.choice(STEPS)(life)
    found = shown(fresh_database_url)
    held_apart = (
        found.available,
        found.held,
        found.pending,
        found.withdrawing,
        found.exiting,
        found.unaccounted,
    )
    assert sum(held_apart) - found.owed == life.net * BASE
    assert found.pending == sum(each.amount for each in found.deposits)
    assert found.withdrawing == sum(each.amount for each in found.withdrawals)
    assert found.unaccounted == sum(each.amount for each in found.transfers)
    assert all(found.next_steps().values())
    position = where_the_money_is(fresh_database_url)
    assert (position.difference, position.made_up) == (0, 0)
    assert (position.available, position.held) == (found.available, found.held)
    assert (position.withdrawals, position.exits) == (found.withdrawing, found.exiting)
    assert position.receivable == found.owed
    assert position.treasury == -books.net("treasury")


def test_a_pending_deposit_says_which_depth_it_waits_for_and_for_how_many_blocks(
    books: TreasuryBooks, fresh_database_url: str
) -> None:
    first = books.happened("deposited", BUYER, 5)
    block = books.next_block()
    books.see(Seen("deposited", BUYER, 3, block))
    late = books.next_block()
    books.see(Seen("deposited", BUYER, 1, late))
    heads = Heads(latest=late, safe=block - 1, finalized=block - 3)
    found = shown(fresh_database_url, heads)
    assert [(each.amount, each.waits_for, each.blocks_left) for each in found.deposits] == [
        (3 * BASE, "safe", 1),
        (1 * BASE, "finalized", late - block + 3),
    ]
    assert books.one("SELECT state FROM offpeak.chain_event WHERE id = %s", first).state == "booked"
    # once the first one is final, there is room for both
    with books.as_treasury():
        books.one("SELECT offpeak.set_cursor(%s, %s, %s)", CHAIN, block - 1, bytes(32))
    assert [each.waits_for for each in shown(fresh_database_url, heads).deposits] == ["safe"] * 2


def test_a_withdrawal_and_an_exit_are_shown_where_they_are(
    books: TreasuryBooks, fresh_database_url: str
) -> None:
    books.happened("deposited", BUYER, 20)
    asked = books.withdraw(BUYER, 6, fee=1)
    found = shown(fresh_database_url)
    assert (found.available, found.withdrawing) == (14 * BASE, 6 * BASE)
    [waiting] = found.withdrawals
    assert (waiting.id, waiting.fee, waiting.transaction) == (asked.id, 1 * BASE, None)
    sent, hashed = UUID(int=7), b"\x07" * 32
    with books.as_treasury():
        books.one(
            "SELECT offpeak.enqueue_transaction(%s, %s, %s, 'withdrawal', %s, %s, %s)",
            sent,
            CHAIN,
            OTHER,
            asked.id,
            OTHER,
            b"",
        )
        books.one(
            "SELECT offpeak.sign_transaction(%s, 0, %s, %s, 21000, 2, 1)", sent, hashed, b"raw"
        )
        books.one("SELECT offpeak.note_broadcast(%s)", hashed)
    [waiting] = shown(fresh_database_url).withdrawals
    assert (waiting.transaction, waiting.block) == (hashed, None)
    with books.as_treasury():
        books.one("SELECT offpeak.mine_transaction(%s, %s, 44, %s)", sent, hashed, bytes(32))
    [waiting] = shown(fresh_database_url, Heads(latest=45, safe=44, finalized=43)).withdrawals
    assert (waiting.block, waiting.blocks_left) == (44, 1)

    books.happened("exit-requested", BUYER, 30, ready_at=LATER)
    found = shown(fresh_database_url)
    assert (found.available, found.exiting) == (0, 14 * BASE)
    assert found.exit is not None
    assert (found.exit.wanted, found.exit.ready_at) == (
        30 * BASE,
        datetime.fromtimestamp(LATER, UTC),
    )
    books.lapse(datetime.fromtimestamp(LATER, UTC) + timedelta(days=4))
    found = shown(fresh_database_url)
    assert (found.available, found.exiting, found.exit) == (14 * BASE, 0, None)


def test_a_plain_transfer_is_shown_until_it_is_credited(
    books: TreasuryBooks, fresh_database_url: str
) -> None:
    event = books.see(Seen("plain-transfer", BUYER, 5, books.next_block()))
    [found] = shown(fresh_database_url).transfers
    assert (found.event, found.is_final, found.is_claimed) == (event, False, False)
    books.book(event)
    claim = UUID(int=9)
    row = books.one(
        "SELECT * FROM offpeak.request_claim(%s, %s, %s, %s, %s, %s)",
        claim,
        event,
        BUYER,
        bytes(32),
        b"{}",
        b"s" * 65,
    )
    assert row.code == "ok"
    [found] = shown(fresh_database_url).transfers
    assert (found.is_final, found.is_claimed) == (True, True)
    books.happened("unaccounted-credited", BUYER, 5, ref=uuid_bytes32(claim))
    after = shown(fresh_database_url)
    assert (after.available, after.unaccounted, after.transfers) == (5 * BASE, 0, ())
