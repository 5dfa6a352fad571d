"""The check finds whatever does not add up, and closes the gates."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from app.db.engine import Database, open_database
from app.finance.check import LedgerCheck
from app.finance.house import HouseBooks
from app.finance.rule import rules
from tests.integration.books import ASSET, Books, Order, wallet
from tests.integration.treasury_books import TreasuryBooks

BUYER = wallet(1)

CORRUPTIONS = {
    "wallet-balance": "UPDATE offpeak.wallet_balance SET available = available + 1",
    "wallet-held": "UPDATE offpeak.wallet_balance SET available = available - 1, held = held + 1"
    " WHERE available > 0",
    "wallet-open-jobs": "UPDATE offpeak.wallet_balance SET open_jobs = open_jobs + 1",
    "wallet-sequence": "UPDATE offpeak.usage_record SET payer_seq = 9 WHERE payer_seq = 2",
    "hold-of-job": "DELETE FROM offpeak.hold_resolution",
    "record-of-job": "DELETE FROM offpeak.usage_record WHERE payer_seq = 1",
    "charge-transfer": "UPDATE offpeak.transfer SET amount = amount + 1 WHERE credit IN"
    " (SELECT id FROM offpeak.account WHERE kind = 'fee')",
    "supplier-accrual": "UPDATE offpeak.cost_entry SET amount = amount + 1 WHERE amount > 0",
    "transfer-parties": "UPDATE offpeak.transfer SET debit = credit, credit = debit WHERE debit IN"
    " (SELECT id FROM offpeak.account WHERE kind = 'deposit_clearing')",
    "known-accounts": "DELETE FROM offpeak.account WHERE kind = 'fee'",
    "house-balance": "UPDATE offpeak.house_balance SET balance = balance + 1",
    "occupied-slots": "UPDATE offpeak.deployment SET occupied = occupied + 1",
    "active-lease": "UPDATE offpeak.lease SET state = 'active', ended_at = NULL WHERE attempt = 1",
    "orphans": "DELETE FROM offpeak.request_authorization",
    "wallet-last-record": "UPDATE offpeak.wallet_balance SET payer_seq = payer_seq + 1",
    "correction": "UPDATE offpeak.usage_record SET input_tokens = 9 WHERE outcome = 4",
    "refund-transfer": "UPDATE offpeak.transfer SET amount = amount + 1 WHERE ref IN"
    " (SELECT record_id FROM offpeak.correction)",
    "wallet-owed": "UPDATE offpeak.wallet_balance SET owed = owed + 1 WHERE owed > 0",
    "wallet-exiting": "UPDATE offpeak.wallet_balance SET exiting = false",
    "exit-clearing": "UPDATE offpeak.wallet_exit SET clearing = clearing + 1 WHERE state = 'open'",
    "withdraw-clearing": "UPDATE offpeak.withdrawal SET amount = amount + 1",
    "payout-clearing": "INSERT INTO offpeak.payout(id, supplier_id, address, asset, amount, state,"
    f" requested_at) VALUES (gen_random_uuid(), gen_random_uuid(), '', '{ASSET}', 1000, 'pending',"
    " now())",
    "chain-event": "UPDATE offpeak.chain_event SET amount = amount + 1 WHERE kind = 'deposited'",
    "suspense": "UPDATE offpeak.chain_event SET amount = amount + 1 WHERE kind = 'plain-transfer'",
    "charge-of-usage": "UPDATE offpeak.usage_record SET input_tokens = 2000000 WHERE outcome = 1",
}

ALSO = (
    ("hold-of-job", "UPDATE offpeak.hold SET amount = amount + 1"),
    ("known-accounts", f"UPDATE offpeak.account SET owner = '{wallet(9)}' WHERE owner = '{BUYER}'"),
)
"""Further corruptions of rules that have one."""

REFUND = "ref = (SELECT record_id FROM offpeak.correction)"
SOMEBODY_ELSE = f"(SELECT id FROM offpeak.account WHERE owner = '{wallet(2)}')"
PLANTED = (
    ("correction", "UPDATE offpeak.correction SET job_id = record_id"),
    ("orphans", "UPDATE offpeak.correction SET job_id = record_id"),
    ("correction", "UPDATE offpeak.correction SET corrects = gen_random_uuid()"),
    ("correction", "DELETE FROM offpeak.correction"),
    ("transfer-parties", "DELETE FROM offpeak.correction"),
    ("correction", "DELETE FROM offpeak.usage_record WHERE outcome = 4"),
    ("correction", "UPDATE offpeak.usage_record SET held = 701, charge = 301 WHERE outcome = 4"),
    ("wallet-last-record", "DELETE FROM offpeak.usage_record WHERE outcome = 4"),
    ("refund-transfer", f"UPDATE offpeak.transfer SET credit = {SOMEBODY_ELSE} WHERE {REFUND}"),
    ("transfer-parties", f"UPDATE offpeak.transfer SET credit = {SOMEBODY_ELSE} WHERE {REFUND}"),
    ("refund-transfer", f"DELETE FROM offpeak.transfer WHERE {REFUND}"),
    ("wallet-balance", f"DELETE FROM offpeak.transfer WHERE {REFUND}"),
)
"""Rules, and errors in a correction that break them."""


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    database = open_database(fresh_database_url)
    yield database
    await database.dispose()


def chain_history(books: TreasuryBooks) -> None:
    """A wallet that owes, one with an exit open, a pending withdrawal, tokens in suspense."""
    lost = books.happened("deposited", wallet(3), 5)
    asked = books.withdraw(wallet(3), 4)
    assert (asked.code, books.orphan(lost)) == ("ok", "ok")
    books.happened("deposited", wallet(4), 5)
    books.happened("exit-requested", wallet(4), 5, ready_at=4_000_000_000)
    books.happened("plain-transfer", wallet(5), 5)
    with books.as_operator():
        books.one("SELECT offpeak.open_account('payout_clearing', 'offpeak', %s)", ASSET)


@pytest.fixture
def busy_books(fresh_database_url: str) -> Iterator[Books]:
    """Books with a settled job that was corrected, a failed and a running one, over a chain."""
    with TreasuryBooks(fresh_database_url) as books:
        chain_history(books)
        books.fund(BUYER, 10_000)
        seller = books.seller(4, ask=100_000)
        orders = [
            Order(payer=BUYER, amount=1_000, candidates=(seller.deployment_id,), per_request=700)
            for _ in range(3)
        ]
        settled, failed, _running = books.accept(orders)
        assert books.settle([settled], 700) == ["ok"]
        books.end(failed.job_id, paid=True)
        assert books.correct(settled.job_id, 300) == "ok"
        yield books


async def test_books_in_use_are_clean(busy_books: Books, database: Database) -> None:
    await HouseBooks(database).roll_up_once()

    report = await LedgerCheck(database).run_and_halt()

    assert report.is_clean, report.summary()
    assert (report.totals.holds, report.totals.open_holds, report.totals.records) == (3, 1, 3)
    assert not busy_books.rows("SELECT * FROM offpeak.ledger_halt")


def test_every_rule_has_a_corruption_that_breaks_it() -> None:
    assert set(CORRUPTIONS) == {rule.name for rule in rules()}


@pytest.mark.parametrize("name", CORRUPTIONS)
async def test_a_broken_rule_is_found_and_stops_accepting(
    busy_books: Books, database: Database, fresh_database_url: str, name: str
) -> None:
    if name == "charge-transfer":
        seller = busy_books.seller(1)
        order = Order(payer=BUYER, amount=1_000, candidates=(seller.deployment_id,))
        assert busy_books.settle(busy_books.accept([order]), 500) == ["ok"]
    await HouseBooks(database).roll_up_once()
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(CORRUPTIONS[name].encode())

    report = await LedgerCheck(database).run_and_halt()

    broken = {finding.rule.name for finding in report.findings if finding.count}
    assert name in broken
    assert all(f.differences for f in report.findings if f.count)
    seller = busy_books.seller(1)
    order = Order(payer=BUYER, amount=1, candidates=(seller.deployment_id,))
    assert busy_books.accept([order])[0].code == "halted"

    assert busy_books.lift_halt() == 1
    assert busy_books.accept([order])[0].code == "ok"


@pytest.mark.parametrize(("found", "planted"), PLANTED)
async def test_an_error_planted_in_a_correction_is_found(
    busy_books: Books, database: Database, fresh_database_url: str, found: str, planted: str
) -> None:
    busy_books.fund(wallet(2), 1)
    await HouseBooks(database).roll_up_once()
    assert (await LedgerCheck(database).run()).is_clean
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(planted.encode())

    report = await LedgerCheck(database).run()

    assert found in {finding.rule.name for finding in report.findings if finding.count}


@pytest.mark.parametrize(("found", "planted"), ALSO)
async def test_what_foreign_keys_forbid_is_found_where_they_did_not_hold(
    busy_books: Books, database: Database, fresh_database_url: str, found: str, planted: str
) -> None:
    assert (await LedgerCheck(database).run()).is_clean
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("SET session_replication_role = replica")
        owner.connection.execute(planted.encode())
    report = await LedgerCheck(database).run()
    assert found in {finding.rule.name for finding in report.findings if finding.count}


async def test_money_moved_from_one_wallet_to_another_is_found_though_balances_agree(
    busy_books: Books, database: Database, fresh_database_url: str
) -> None:
    busy_books.fund(wallet(2), 10)
    with psycopg.connect(fresh_database_url, autocommit=True) as connection:
        connection.execute(
            "WITH moved AS (INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset,"
            " created_at) SELECT gen_random_uuid(), 1, f.id, t.id, 5, f.asset, now()"
            " FROM offpeak.account f, offpeak.account t WHERE f.owner = %s AND t.owner = %s"
            " RETURNING debit, credit) UPDATE offpeak.wallet_balance w SET available = available"
            " + CASE WHEN w.account_id = m.credit THEN 5 ELSE -5 END FROM moved m"
            " WHERE w.account_id IN (m.debit, m.credit)",
            (BUYER, wallet(2)),
        )
    await HouseBooks(database).roll_up_once()

    report = await LedgerCheck(database).run_and_halt()

    assert report.summary() == "transfer-parties: 1"


async def test_a_check_that_cannot_be_made_stops_accepting_too(
    busy_books: Books, database: Database, fresh_database_url: str
) -> None:
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("ALTER TABLE offpeak.cost_entry RENAME COLUMN amount TO price")

    with pytest.raises(DBAPIError):
        await LedgerCheck(database).run_and_halt()

    assert "not made" in busy_books.one("SELECT reason FROM offpeak.ledger_halt").reason
