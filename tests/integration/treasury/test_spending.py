"""What the chain is told of spending, and what suppliers get of what was earned."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from typer.testing import Result

from app.capacity.suppliers import SupplierService
from app.chain.calls import BLACKLIST
from app.cli.exits import Exit
from app.db.engine import OPERATOR_ROLE, Database, open_database
from app.treasury.commitments import CommitmentLoop, CommitmentTerms
from app.treasury.errors import PayoutRefused
from app.treasury.fee import nano
from app.treasury.payouts import PayoutLoop, PayoutService, PayoutTerms
from ledger.encoding import Address
from ledger.money import format_amount
from ledger.signing import SigningKey
from tests.chain import ADMIN, CHAIN_ID, OPERATOR, SUPPLIER, address_of_key
from tests.integration.books import Books, Order, Seller
from tests.integration.cli.running import invoked
from tests.integration.treasury.house import FUNDS, House, house, ids

__all__ = ["house"]

CHARGE = 1_234_567
"""Nano: 1,234.567 base units."""
HOLD = 2_000_000_000
ASK = 10**9
"""Nano for a slot-second: a token."""
PAYEE = address_of_key(SUPPLIER)


@dataclass
class Shop:
    """Sells jobs of the house's wallets, whose supplier earns a token a second."""

    house: House
    books: Books
    seller: Seller
    operator: Database

    def sell(self, wallet: SigningKey, charge: int = CHARGE, *, seconds: float = 0.1) -> UUID:
        order = Order(
            payer=wallet.address,
            amount=HOLD,
            candidates=(self.seller.deployment_id,),
            ask=ASK,
            per_request=charge,
            asset=self.house.contracts.token,
        )
        [outcome] = self.books.accept([order])
        assert outcome.code == "ok"
        with psycopg.connect(self.house.url, autocommit=True) as connection:
            connection.execute(
                "UPDATE offpeak.lease SET started_at = started_at - make_interval(secs => %s)"
                " WHERE id = %s",
                (seconds, outcome.lease_id),
            )
        assert self.books.settle([outcome], charge) == ["ok"]
        assert isinstance(outcome.job_id, UUID)
        return outcome.job_id

    @property
    def supplier(self) -> UUID:
        row = self.books.one(
            "SELECT supplier_id FROM offpeak.agent WHERE id = %s", self.seller.agent_id
        )
        assert isinstance(row.supplier_id, UUID)
        return row.supplier_id

    def commitments(self) -> CommitmentLoop:
        terms = CommitmentTerms(
            chain_id=CHAIN_ID,
            treasury=self.house.contracts.treasury,
            token=self.house.contracts.token,
            operator=address_of_key(OPERATOR),
            interval=timedelta(0),
        )
        return CommitmentLoop(self.house.database, terms, ids())

    def payout_loop(self) -> PayoutLoop:
        terms = PayoutTerms(
            chain_id=CHAIN_ID,
            treasury=self.house.contracts.treasury,
            token=self.house.contracts.token,
            operator=address_of_key(OPERATOR),
        )
        return PayoutLoop(self.house.database, self.house.rpc, terms, ids())

    @property
    def payouts(self) -> PayoutService:
        return PayoutService(self.operator, self.house.contracts.token, ids())

    async def address(self, address: Address) -> None:
        service = SupplierService(self.operator, asset=self.house.contracts.token)
        await service.set_payout_address(self.supplier, address)

    async def commit(self) -> None:
        """Bring the chain's sums to the ledger's."""
        for _ in range(4):
            await self.commitments().run_once()
            await self.house.round()

    async def pay(self, rounds: int = 4) -> None:
        for _ in range(rounds):
            await self.payout_loop().run_once()
            await self.house.round()

    async def spent(self, wallet: SigningKey) -> tuple[int, int]:
        """What the chain says a wallet has spent, and has left."""
        treasury = self.house.treasury
        account = await treasury.account(wallet.address, "latest")
        return account.spent, await treasury.available(wallet.address, "latest")


@pytest.fixture
def market(house: House) -> Iterator[Books]:
    """Books in the token of the chain."""
    with Books(house.url) as opened:
        opened.asset = house.contracts.token
        yield opened


@pytest.fixture
async def shop(house: House, market: Books) -> AsyncIterator[Shop]:
    operator = open_database(house.url, pool_size=2, role=OPERATOR_ROLE)
    yield Shop(house, market, market.seller(100, ask=ASK), operator)
    await operator.dispose()


async def test_spending_is_committed_rounded_up_and_told_only_once(shop: Shop) -> None:
    house = shop.house
    wallet, idle = await house.new_wallet(), await house.new_wallet()
    shop.sell(wallet)
    await shop.commit()
    assert await shop.spent(wallet) == (1_235, FUNDS - 1_235)
    assert await shop.spent(idle) == (0, FUNDS)
    shop.sell(wallet)  # 2,469.134 base units in all
    await shop.commit()
    assert await shop.spent(wallet) == (2_470, FUNDS - 2_470)
    sent = [row.purpose for row in house.transactions() if row.state == "done"]
    assert sent == ["commit", "commit"]
    assert (await shop.commitments().run_once()) == 0
    assert await house.treasury.earned("latest") == 2_470
    await house.check_books()


async def test_a_correction_comes_back_as_a_refund_and_the_last_unit_can_be_withdrawn(
    shop: Shop,
) -> None:
    house = shop.house
    wallet = await house.new_wallet()
    job = shop.sell(wallet)
    await shop.commit()
    assert shop.books.correct(job, 1_000) == "ok"  # the charge is 1 base unit now
    await shop.commit()
    assert await shop.spent(wallet) == (1_235, FUNDS - 1)
    sent = [row.purpose for row in house.transactions()]
    assert sent == ["commit", "refund"]
    await house.ask(wallet, FUNDS - 1)
    await house.settle(4)
    assert await house.tokens(wallet.address) == FUNDS - 1
    assert house.available(wallet) == 0
    await house.check_books()


async def test_two_planners_at_once_queue_one_commitment(shop: Shop) -> None:
    wallet = await shop.house.new_wallet()
    shop.sell(wallet)
    queued = [await shop.commitments().run_once(), await shop.commitments().run_once()]
    assert queued == [1, 0]
    assert [row.purpose for row in shop.house.transactions()] == ["commit"]


async def test_a_balance_that_the_chain_does_not_hold_is_not_committed(shop: Shop) -> None:
    wallet = SigningKey(bytes(31) + b"\x05")
    shop.books.fund(wallet.address, 10 * HOLD)
    shop.sell(wallet)
    assert await shop.commitments().run_once() == 0
    assert shop.house.transactions() == []


async def test_a_supplier_gets_what_it_earned_once_by_a_statement(shop: Shop) -> None:
    house = shop.house
    wallet = await house.new_wallet()
    shop.sell(wallet, 1_500_000_000)
    [statement] = await shop.payouts.statements()
    assert statement.owed >= 100_000_000
    assert statement.to_be_paid == 0  # nobody knows where to
    await shop.address(PAYEE)
    [statement] = await shop.payouts.statements(shop.supplier)
    due = statement.to_be_paid
    await shop.payouts.request(statement)
    with pytest.raises(PayoutRefused):
        await shop.payouts.request(statement)
    [pending] = await shop.payouts.statements()
    assert (pending.pending, pending.to_be_paid) == (due * 1_000, 0)
    await shop.pay()  # nothing is earned on chain yet
    assert [row.purpose for row in house.transactions()] == []
    await shop.commit()
    before = await house.tokens(PAYEE)
    await shop.pay()
    assert await house.tokens(PAYEE) - before == due
    [paid] = await shop.payouts.statements()
    assert (paid.paid, paid.pending, paid.to_be_paid) == (due * 1_000, 0, 0)
    assert paid.accrued == statement.accrued
    assert [row.purpose for row in house.transactions()] == ["commit", "payout"]
    await shop.pay()
    assert len(house.transactions()) == 2
    await house.check_books()


async def test_payouts_of_many_suppliers_go_in_one_transaction(shop: Shop) -> None:
    house = shop.house
    wallet = await house.new_wallet()
    sellers = [shop.seller, *(shop.books.seller(10, ask=ASK) for _ in range(3))]
    shops = [Shop(house, shop.books, each, shop.operator) for each in sellers]
    payees = [SigningKey(bytes(31) + bytes([n + 1])).address for n in range(4)]
    for each, payee in zip(shops, payees, strict=True):
        each.sell(wallet, 1_500_000_000)
        await each.address(payee)
    await shop.commit()
    for statement in await shop.payouts.statements():
        await shop.payouts.request(statement)
    await shop.pay()
    sent = [row.state for row in house.transactions() if row.purpose == "payout"]
    assert sent == ["done"]
    for statement in await shop.payouts.statements():
        assert statement.address is not None
        assert await house.tokens(statement.address) * 1_000 == statement.paid > 0
    await house.check_books()


async def test_a_refused_transfer_leaves_the_payout_pending_with_the_reason_and_is_tried_later(
    shop: Shop,
) -> None:
    house = shop.house
    wallet = await house.new_wallet()
    shop.sell(wallet, 1_500_000_000)
    await shop.address(PAYEE)
    await shop.commit()
    [statement] = await shop.payouts.statements()
    await shop.payouts.request(statement)
    await house.deny(PAYEE)
    await shop.pay()
    [row] = house.rows("SELECT * FROM offpeak.payout")
    assert row.state == "pending"
    assert "refused" in row.last_error
    assert len([1 for each in house.transactions() if each.purpose == "payout"]) == 1
    await house.act(ADMIN, house.contracts.token, BLACKLIST.data(PAYEE, False))
    with psycopg.connect(house.url, autocommit=True) as connection:
        connection.execute("UPDATE offpeak.chain_event SET mined_at = mined_at - interval '2 h'")
    await shop.pay()
    [row] = house.rows("SELECT * FROM offpeak.payout")
    assert (row.state, row.last_error) == ("paid", None)
    await house.check_books()


async def test_while_paused_no_payout_is_made_and_afterwards_it_is(shop: Shop) -> None:
    house = shop.house
    wallet = await house.new_wallet()
    shop.sell(wallet, 1_500_000_000)
    await shop.address(PAYEE)
    await shop.commit()
    [statement] = await shop.payouts.statements()
    await shop.payouts.request(statement)
    await house.pause()
    await shop.pay(2)
    assert [row for row in house.transactions() if row.purpose == "payout"] == []
    await house.unpause()
    await shop.pay()
    [paid] = await shop.payouts.statements()
    assert paid.paid == statement.to_be_paid * 1_000


async def test_the_command_shows_the_statement_asks_and_pays(shop: Shop, tmp_path: Path) -> None:
    house = shop.house
    environ = {
        "OFFPEAK_DATABASE_URL": house.url,
        "OFFPEAK_RPC_URLS": house.contracts.chain.url,
        "OFFPEAK_TOKEN_ADDRESS": house.contracts.token,
        "OFFPEAK_TREASURY_ADDRESS": house.contracts.treasury,
    }

    async def run(*arguments: str) -> Result:
        return await asyncio.to_thread(invoked, tmp_path, "supplier", *arguments, **environ)

    wallet = await house.new_wallet()
    shop.sell(wallet, 1_500_000_000)
    await shop.commit()
    name = f"sup_{shop.supplier}"
    nothing = await run("payout", "--yes")
    assert (nothing.exit_code, "nothing to pay" in nothing.stderr) == (0, True)
    assert (await run("payout-address", name, "0x12")).exit_code == Exit.USAGE
    unknown = await run("payout-address", f"sup_{uuid4()}", PAYEE)
    assert "supplier-not-found" in unknown.stderr
    assert (await run("payout-address", name, PAYEE)).exit_code == 0
    [statement] = await shop.payouts.statements()
    due = format_amount(nano(statement.to_be_paid))
    dry = await run("payout", "--supplier", name, "--dry-run")
    assert dry.exit_code == 0
    assert f"to_be_paid {due}" in dry.stdout
    assert "earned on chain 1.500000000" in dry.stderr
    asked = await run("payout")  # nobody is there to say yes
    assert asked.exit_code == Exit.NOT_SIGNED
    assert house.rows("SELECT FROM offpeak.payout") == []
    paid = await run("payout", "--yes", "--json")
    [shown] = json.loads(paid.stdout)["statements"]
    [row] = house.rows("SELECT * FROM offpeak.payout")
    assert (shown["payout"], shown["to_be_paid"]) == (str(row.id), due)
    await shop.pay()
    assert await house.tokens(PAYEE) == statement.to_be_paid
