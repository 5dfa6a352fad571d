"""Chain and books side by side: the identities hold to the unit, and each break has its name."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from app.chain.blocks import TransactionReceipt
from app.db.engine import open_database
from app.treasury.metrics import TreasuryMetrics
from app.treasury.status import LIMITS, Kind, TreasuryStatus
from app.treasury.status_loop import StatusLoop
from app.treasury.status_reader import StatusReader, StatusTerms
from ledger.encoding import Address
from tests.chain import ALICE, BOB, CHAIN_ID, OPERATOR, Contracts, address_of_key, deployed_on
from tests.integration.treasury_books import Seen, TreasuryBooks

TOKEN = 1_000_000
"""Base units of a token."""


@dataclass
class World:
    """Contracts of their own, and the books as a watcher would have written them."""

    url: str
    contracts: Contracts
    books: TreasuryBooks

    def see(self, kind: str, payer: Address, amount: int, receipt: TransactionReceipt) -> UUID:
        return self.books.see(Seen(kind, payer, amount, receipt.block_number))

    def book(self, event: UUID) -> None:
        with self.books.as_treasury():
            row = self.books.one(
                "SELECT offpeak.book_event(%s, %s) AS code", event, self.contracts.token
            )
        assert row.code == "ok"

    def scan(self) -> None:
        """Make what is mined final, and say that it is stored."""
        self.contracts.chain.finalize()
        block: Any = self.contracts.chain.ask("eth_getBlockByNumber", "finalized", False)
        with self.books.as_treasury():
            self.books.one(
                "SELECT offpeak.set_cursor(%s, %s, %s)",
                CHAIN_ID,
                int(block["number"], 16),
                bytes.fromhex(block["hash"][2:]),
            )

    def status(self, **given: Any) -> TreasuryStatus:
        async def read() -> TreasuryStatus:
            terms = StatusTerms(
                chain_id=CHAIN_ID,
                treasury=self.contracts.treasury,
                token=self.contracts.token,
                **given,
            )
            database = open_database(self.url, pool_size=1)
            try:
                async with self.contracts.chain.rpc() as rpc:
                    return await StatusReader(database, rpc, terms).read()
            finally:
                await database.dispose()

        return asyncio.run(read())


@pytest.fixture
def world(contracts: Contracts, fresh_database_url: str) -> Iterator[World]:
    fresh = deployed_on(contracts.chain)  # so that no other test's events are counted
    with TreasuryBooks(fresh_database_url) as books:
        yield World(fresh_database_url, fresh, books)


def names(status: TreasuryStatus) -> list[str]:
    return [alarm.name for alarm in status.alarms()]


def test_nothing_is_compared_before_the_first_scan(world: World) -> None:
    status = world.status()
    assert (status.chain, status.holds, names(status)) == (None, True, [])


def test_chain_and_books_agree_to_the_unit(world: World) -> None:
    alice, bob = address_of_key(ALICE), address_of_key(BOB)
    world.book(world.see("deposited", alice, 5, world.contracts.deposit(ALICE, 5)))
    world.book(world.see("plain-transfer", bob, 2, world.contracts.transfer(BOB, 2)))
    world.scan()
    status = world.status()
    assert status.chain is not None
    figures = (status.chain.tokens, status.chain.liability, status.chain.unaccounted)
    assert figures == (7, 5, 2)
    assert (status.holds, status.tokens_differ_nano, status.events_differ) == (True, 0, 0)
    assert status.books.suspense_nano == 2_000
    assert status.chain.block == status.head


def test_what_is_seen_and_not_booked_and_what_is_booked_early_are_no_difference(
    world: World,
) -> None:
    alice = address_of_key(ALICE)
    late = world.see("deposited", alice, 5, world.contracts.deposit(ALICE, 5))
    world.scan()
    status = world.status()
    assert (status.holds, status.books.late, status.books.early) == (True, 5, 0)
    assert [(each.count, each.since is None) for each in status.books.pending][1] == (1, False)
    world.book(late)
    early = world.see("deposited", alice, 3, world.contracts.deposit(ALICE, 3))
    world.book(early)
    status = world.status()
    assert (status.holds, status.books.late, status.books.early) == (True, 0, 3)


def test_an_event_that_was_hidden_from_us_is_missed(world: World) -> None:
    world.contracts.deposit(ALICE, 5)
    world.scan()
    status = world.status()
    assert (status.holds, status.events_differ, status.tokens_differ_nano) == (False, 1, 5_000)
    assert names(status)[:2] == ["TreasuryBooksDiffer", "TreasuryEventsMissing"]


def test_a_single_unit_too_much_in_the_books_is_found(world: World) -> None:
    receipt = world.contracts.deposit(ALICE, 5)
    world.book(world.see("deposited", address_of_key(ALICE), 6, receipt))
    world.scan()
    status = world.status()
    assert (status.holds, status.tokens_differ_nano) == (False, -1_000)


def test_each_key_shows_its_nonces_and_what_its_gas_must_pay_for(world: World) -> None:
    operator = address_of_key(OPERATOR)
    on_chain = world.status(keys=[operator]).senders[0].chain_nonce
    with world.books.as_treasury():
        transactions = [uuid4(), uuid4()]
        for each in transactions:
            world.books.one(
                "SELECT offpeak.enqueue_transaction(%s, %s, %s, 'credit', %s, %s, %s)",
                each,
                CHAIN_ID,
                operator,
                each,
                world.contracts.treasury,
                b"",
            )
        world.books.one(
            "SELECT offpeak.sign_transaction(%s, %s, %s, %s, 100000, %s, 1)",
            transactions[0],
            on_chain,
            b"\x01" * 32,
            b"raw",
            10**30,
        )
    [sender] = world.status(keys=[operator]).senders
    assert (sender.open, sender.nonce_gap) == (2, 1)
    assert sender.needed_wei >= 10**35
    assert "TreasuryGasLow" in names(world.status())
    world.contracts.chain.send(OPERATOR, operator, b"")
    world.contracts.chain.send(OPERATOR, operator, b"")
    assert "TreasuryNonceTaken" in names(world.status())


def test_what_waits_too_long_is_told_by_its_kind(world: World) -> None:
    world.see("deposited", address_of_key(ALICE), 5, world.contracts.deposit(ALICE, 5))
    status = world.status()
    assert "TreasuryItemOld" not in names(status)
    later = replace(status, as_of=status.as_of + LIMITS[Kind.DEPOSIT] + timedelta(minutes=1))
    assert next(alarm.detail for alarm in later.alarms()).startswith("deposit: 1 waiting")


def test_the_gauges_show_the_status(world: World) -> None:
    world.contracts.deposit(ALICE, 5)
    world.scan()
    registry = CollectorRegistry()
    shown = TreasuryMetrics(registry)
    shown.show(world.status())

    def value(gauge: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"offpeak_treasury_{gauge}", labels)

    assert (value("identity_holds"), value("difference_nano")) == (0, 5_000)
    assert (value("events_missing"), value("alarms", name="TreasuryBooksDiffer")) == (1, 1)
    assert value("tokens_base_units", part="liability") == 5
    world.book(world.see("deposited", address_of_key(ALICE), 5, world.contracts.deposit(ALICE, 1)))
    shown.show(world.status())
    assert (value("identity_holds"), value("alarms", name="TreasuryBooksDiffer")) == (0, 1)
    world.see("deposited", address_of_key(ALICE), 5, world.contracts.deposit(ALICE, 1))
    shown.show(world.status())
    assert value("pending", kind="deposit") == 1


async def test_the_loop_logs_an_alarm_when_it_comes_and_when_it_goes(
    contracts: Contracts, fresh_database_url: str
) -> None:
    terms = StatusTerms(
        chain_id=CHAIN_ID,
        treasury=contracts.treasury,
        token=contracts.token,
        keys=[Address("0x" + "99" * 20)],
        gas_low=1,
    )
    database = open_database(fresh_database_url, pool_size=1)
    try:
        async with contracts.chain.rpc() as rpc:
            reader = StatusReader(database, rpc, terms)
            loop = StatusLoop(reader, database, TreasuryMetrics(CollectorRegistry()))
            with capture_logs() as logs:
                counts = [await loop.run_once(), await loop.run_once()]
                contracts.chain.set_gas_money(terms.keys[0], 1)
                counts.append(await loop.run_once())
    finally:
        await database.dispose()
    assert counts == [1, 1, 0]
    assert [(line["event"], line["alarm"]) for line in logs] == [
        ("treasury alarm", "TreasuryGasLow"),
        ("treasury alarm is over", "TreasuryGasLow"),
    ]


async def test_tokens_that_the_books_do_not_know_stop_accepting_after_two_rounds(
    contracts: Contracts, fresh_database_url: str
) -> None:
    terms = StatusTerms(chain_id=CHAIN_ID, treasury=contracts.treasury, token=contracts.token)
    database = open_database(fresh_database_url, pool_size=1)
    try:
        async with contracts.chain.rpc() as rpc:
            contracts.chain.finalize()
            final = await rpc.block("finalized")
            assert final is not None
            with psycopg.connect(fresh_database_url, autocommit=True) as owner:
                owner.execute(
                    "INSERT INTO offpeak.chain_cursor VALUES (%s, %s, %s, now())",
                    (CHAIN_ID, final.number, final.hash),
                )
                loop = StatusLoop(
                    StatusReader(database, rpc, terms),
                    database,
                    TreasuryMetrics(CollectorRegistry()),
                )
                owner.execute("SELECT offpeak.credit_deposit(gen_random_uuid(), 'x', 'y', 1)")
                asset = contracts.token
                wallet = owner.execute(
                    "SELECT offpeak.open_account('treasury', 'offpeak', %s),"
                    " offpeak.open_account('wallet', 'x', %s)",
                    (asset, asset),
                ).fetchone()
                assert wallet is not None
                owner.execute(
                    "INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset,"
                    " created_at)"
                    " VALUES (gen_random_uuid(), 1, %s, %s, 1000, %s, now())",
                    (*wallet, asset),
                )
                found = []
                for _ in range(2):
                    await loop.run_once()
                    halts = owner.execute("SELECT reason FROM offpeak.ledger_halt").fetchall()
                    found.append([row[0] for row in halts])
    finally:
        await database.dispose()
    assert found == [[], ["treasury: the chain less the books: -0.000001000"]]
