"""What a closed period holds never changes, whatever commits later."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.integration.books import Books, Order, Seller, wallet
from tests.integration.receipts.conftest import Archive

BUYER, LATE_BUYER = wallet(1), wallet(2)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR = datetime(2100, 1, 1, tzinfo=UTC)
BEFORE_RECORD = (
    "SELECT record_id FROM offpeak.usage_record WHERE completed_at < %(at)s"
    " AND coalesce(leaf_index < offpeak.leaf_mark(%(at)s), offpeak.leaf_mark(%(at)s) IS NULL)"
    " ORDER BY 1"
)
BEFORE_TRANSFER = (
    "SELECT ref FROM offpeak.transfer WHERE created_at < %(at)s"
    " AND xid < offpeak.xid_mark(%(at)s) ORDER BY 1"
)


@pytest.fixture
def books(archive: Archive) -> Books:
    archive.books.fund(BUYER, 10_000)
    archive.books.fund(LATE_BUYER, 10_000)
    return archive.books


@pytest.fixture
def owner(fresh_database_url: str) -> Iterator[Books]:
    with Books(fresh_database_url, role="none") as owner:
        yield owner


@pytest.fixture
def seller(archive: Archive) -> Seller:
    return archive.seller


async def seal(archive: Archive) -> None:
    await archive.sign()
    await archive.sequencer().run_once()


def settled(books: Books, seller: Seller, payer: Any = BUYER, *, charge: int = 500) -> UUID:
    place = (seller.deployment_id,)
    order = Order(payer=payer, amount=1_000, candidates=place, per_request=charge)
    [accepted] = books.accept([order])
    assert books.settle([accepted], charge) == ["ok"]
    return order.job_id


def end_period_now(books: Books, owner: Books, name: str, starts_at: datetime) -> datetime:
    """Make a soft-closed period that ends with this second, and return its end once it is over."""
    ends_at: datetime = owner.one(
        "INSERT INTO offpeak.accounting_period(name, starts_at, ends_at, state, soft_closed_at)"
        " VALUES (%s, %s, date_trunc('second', clock_timestamp()) + interval '1 s', 'soft-closed',"
        " now()) RETURNING ends_at",
        name,
        starts_at,
    ).ends_at
    while not books.one("SELECT clock_timestamp() >= %s AS over", ends_at).over:
        pass
    return ends_at


def close_once(books: Books, name: str) -> str:
    with books.as_operator():
        return str(books.one("SELECT code FROM offpeak.close_period(%s)", name).code)


def close(books: Books, name: str) -> str:
    """Close, waiting for other tests' transactions: the server's oldest one holds everybody up."""
    while (code := close_once(books, name)) == "in_flight":
        pass
    return code


def booked(books: Books, start: datetime, end: datetime) -> tuple[set[UUID], set[UUID]]:
    """Return the records and the transfers' refs booked in [start, end), from the functions.

    They are what the views say, each once.
    """
    found = []
    for view, function, key, before in (
        ("booked_record", "booked_records", "record_id", BEFORE_RECORD),
        ("booked_transfer", "booked_transfers", "ref", BEFORE_TRANSFER),
    ):
        for at in (start, end):
            by_mark = books.connection.execute(before.encode(), {"at": at}).fetchall()
            by_view = books.rows(
                f"SELECT {key} FROM offpeak.{view} WHERE booked_at < %s ORDER BY 1", at
            )
            assert by_mark == by_view
        by_function = sorted(
            (row[0], row.booked_at)
            for row in books.rows(
                f"SELECT {key}, booked_at FROM offpeak.{function}(%s, %s)", start, end
            )
        )
        by_view = sorted(
            (row[0], row.booked_at)
            for row in books.rows(
                f"SELECT {key}, booked_at FROM offpeak.{view}"
                " WHERE booked_at >= %s AND booked_at < %s",
                start,
                end,
            )
        )
        assert by_function == by_view
        found.append({key for key, _ in by_function})
    return found[0], found[1]


async def test_what_commits_after_the_close_is_booked_at_the_start_of_the_next_period(
    archive: Archive, books: Books, owner: Books, seller: Seller, fresh_database_url: str
) -> None:
    in_time = settled(books, seller)
    its_own = books.seller(1, ask=100_000)  # or the others would wait for its slot
    place = (its_own.deployment_id,)
    late_order = Order(payer=LATE_BUYER, amount=1_000, candidates=place, per_request=700)
    [late] = books.accept([late_order])
    with Books(fresh_database_url) as slow:
        slow.connection.autocommit = False
        assert slow.settle([late], 700) == ["ok"]  # and does not commit yet
        slow.fund(wallet(3), 5)
        january = end_period_now(books, owner, "2020-01", LONG_AGO)
        next_month = settled(books, seller)
        assert close(books, "2020-01") == "unsealed"
        await seal(archive)
        before = booked(books, LONG_AGO, january)
        assert in_time in before[0]
        assert in_time in before[1]
        assert close(books, "2020-01") == "ok"
        slow.connection.commit()

    for _ in ("unsealed", "sealed"):
        assert booked(books, LONG_AGO, january) == before
        records, transfers = booked(books, january, january + timedelta(microseconds=1))
        assert late.job_id in records, "at the very start of the next period"
        assert {late.job_id, late.lease_id} <= transfers, "with its charge and its accrual"
        assert len(transfers) == 3, "and the deposit, whose own times are before that"
        assert booked(books, january, FAR)[0] == {late.job_id, next_month}
        await seal(archive)

    february = end_period_now(books, owner, "2020-02", january)
    in_february = booked(books, january, february)
    assert close(books, "2020-02") == "ok"
    settled(books, seller)
    await seal(archive)
    assert booked(books, LONG_AGO, january) == before
    assert booked(books, january, february) == in_february


async def test_a_row_that_missed_two_periods_is_booked_after_the_second(
    archive: Archive, books: Books, owner: Books, seller: Seller
) -> None:
    job = settled(books, seller)
    await seal(archive)
    january = end_period_now(books, owner, "2020-01", LONG_AGO)
    assert close(books, "2020-01") == "ok"
    february = end_period_now(books, owner, "2020-02", january)
    assert close(books, "2020-02") == "ok"
    back = settled(books, seller)
    for table, at, key in (
        ("usage_record", "completed_at", "record_id"),
        ("transfer", "created_at", "ref"),
    ):
        owner.connection.execute(  # as if the clock had gone back
            f"UPDATE offpeak.{table} SET {at} = %s WHERE {key} = %s".encode(), (LONG_AGO, back)
        )

    assert job in booked(books, LONG_AGO, january)[0]
    assert back not in booked(books, LONG_AGO, february)[0] | booked(books, LONG_AGO, february)[1]
    at_the_end = booked(books, february, february + timedelta(microseconds=1))
    assert (back in at_the_end[0], back in at_the_end[1]) == (True, True)
    await seal(archive)
    assert booked(books, february, february + timedelta(microseconds=1)) == at_the_end


async def test_a_month_waits_for_transactions_that_could_still_add_to_it(
    archive: Archive, books: Books, owner: Books, seller: Seller, fresh_database_url: str
) -> None:
    with Books(fresh_database_url) as slow:
        slow.connection.autocommit = False
        slow.one("SELECT pg_current_xact_id()")
        settled(books, seller)
        await seal(archive)
        end_period_now(books, owner, "2020-01", LONG_AGO)
        assert close_once(books, "2020-01") == "in_flight"
        slow.connection.rollback()
    assert close(books, "2020-01") == "ok"


async def test_months_are_closed_in_order_and_for_good(
    archive: Archive, books: Books, owner: Books, seller: Seller
) -> None:
    settled(books, seller)
    await seal(archive)
    january = end_period_now(books, owner, "2020-01", LONG_AGO)
    february = end_period_now(books, owner, "2020-02", january)
    assert close(books, "2020-02") == "earlier_open"
    assert close(books, "2020-01") == "ok"
    assert close(books, "2020-02") == "ok"
    assert close(books, "2020-02") == "ok", "saying it again changes nothing"
    with books.as_operator():
        assert books.one("SELECT offpeak.reopen_period('2020-02')")[0] == "closed"
        assert books.one("SELECT offpeak.soft_close_period('2019-12')")[0] == "later_closed"
    assert february > january


def test_a_month_is_reviewed_before_it_is_closed_and_may_be_opened_again(books: Books) -> None:
    with books.as_operator():
        assert books.one("SELECT offpeak.soft_close_period('2999-01')")[0] == "not_over"
        assert books.one("SELECT offpeak.reopen_period('2020-01')")[0] == "not_soft_closed"
    assert close(books, "2020-01") == "not_soft_closed"
    with books.as_operator():
        for _ in range(2):
            assert books.one("SELECT offpeak.soft_close_period('2020-01')")[0] == "ok"
        assert books.one("SELECT offpeak.reopen_period('2020-01')")[0] == "ok"
        assert books.one("SELECT state FROM offpeak.accounting_period").state == "open"
    assert close(books, "2020-01") == "not_soft_closed"
    with books.as_operator():
        assert books.one("SELECT offpeak.soft_close_period('2020-01')")[0] == "ok"
    assert close(books, "2020-01") == "ok"
    with books.as_operator():
        assert books.one("SELECT offpeak.soft_close_period('2020-01')")[0] == "closed"
    found = books.one("SELECT * FROM offpeak.accounting_period")
    assert found.starts_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert found.ends_at == datetime(2020, 2, 1, tzinfo=UTC)


def test_a_gateway_closes_nothing_and_corrects_nothing(books: Books) -> None:
    for call in (
        "soft_close_period('2020-01')",
        "reopen_period('2020-01')",
        "close_period('2020-01')",
        "correct_record(gen_random_uuid(), gen_random_uuid(), 0, 'x')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            books.one(f"SELECT offpeak.{call}")
