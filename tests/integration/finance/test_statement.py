"""Statements add up: over any split of time, and with late bookings."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from app.finance.errors import UnknownAccount
from app.finance.interval import Interval
from app.finance.statement import Holder, Movement, MovementKind, Statements
from ledger.accounts import AccountKind
from ledger.money import Nano
from tests.integration.books import ASSET, Books, Order, wallet
from tests.integration.receipts.conftest import Archive

BUYER, OTHER = wallet(1), wallet(2)
START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2026, 4, 1, tzinfo=UTC)
HOURS = (END - START) // timedelta(hours=1)
JOBS = 24


@dataclass(frozen=True, slots=True)
class Read:
    """A statement, read to its end."""

    opening: Nano
    closing: Nano
    held: Nano
    movements: list[Movement]
    is_final: bool


@dataclass(frozen=True, slots=True)
class Quarter:
    """Three months of a market: January and February are closed."""

    archive: Archive
    supplier: UUID

    @property
    def holders(self) -> dict[str, Holder]:
        return {
            "buyer": Holder(AccountKind.WALLET, BUYER, ASSET),
            "other": Holder(AccountKind.WALLET, OTHER, ASSET),
            "supplier": Holder(AccountKind.SUPPLIER, str(self.supplier), ASSET),
            "fees": Holder.fees(ASSET),
        }

    async def read(self, holder: Holder, start: datetime, end: datetime) -> Read:
        async with Statements(self.archive.database).of(holder, Interval(start, end)) as found:
            movements = [each async for each in found.movements()]
            assert found.count == len(movements)
            return Read(found.opening, found.closing, found.held, movements, found.is_final)


@pytest.fixture
async def quarter(archive: Archive, fresh_database_url: str) -> Quarter:
    """Jobs, one every 90 hours or so; some ended late, one of each wallet is corrected."""
    books, seller = archive.books, archive.books.seller(1_000, ask=100_000)
    for payer in (BUYER, OTHER):
        books.fund(payer, 1_000 * JOBS)
    orders = [
        Order(
            payer=(BUYER, OTHER)[n % 2],
            amount=1_000,
            per_request=400 + n,
            candidates=(seller.deployment_id,),
        )
        for n in range(JOBS)
    ]
    accepted = books.accept(orders)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(
            "UPDATE offpeak.transfer SET created_at = %s", (START + timedelta(seconds=1),)
        )
        owner.connection.execute("UPDATE offpeak.hold SET created_at = %s", (START,))
        for n, one in enumerate(accepted[: JOBS - 2]):
            assert books.settle([one], 400 + n) == ["ok"]
            at = START + (END - START) * n / JOBS
            await backdate(owner, one.job_id, one.lease_id, at.replace(microsecond=0))
        for month, late_from in (("2026-01", 31), ("2026-02", 59)):
            await archive.sign()
            await archive.sequencer().run_once()
            await close(books, month)
            n = JOBS - 2 if month == "2026-01" else JOBS - 1
            late = accepted[n]
            assert books.settle([late], 400 + n) == ["ok"]
            at = START + timedelta(days=late_from, seconds=-1)
            await backdate(owner, late.job_id, late.lease_id, at)
    for one in accepted[:2]:
        correction = uuid4()
        assert books.correct(one.job_id, 100, correction=correction) == "ok"
        with Books(fresh_database_url, role="none") as owner:
            await backdate(owner, correction, correction, END - timedelta(days=1))
    supplier = books.one(
        "SELECT supplier_id FROM offpeak.agent WHERE id = %s", seller.agent_id
    ).supplier_id
    return Quarter(archive, supplier)


async def backdate(owner: Books, record: UUID, lease: UUID, at: datetime) -> None:
    """Let a record and its transfers have happened at another time."""
    owner.connection.execute(
        "UPDATE offpeak.usage_record SET completed_at = %s WHERE record_id = %s", (at, record)
    )
    owner.connection.execute(
        "UPDATE offpeak.transfer SET created_at = %s WHERE ref IN (%s, %s)", (at, record, lease)
    )


async def close(books: Books, month: str) -> None:
    with books.as_operator():
        assert books.one("SELECT offpeak.soft_close_period(%s)", month)[0] == "ok"
        while (code := books.one("SELECT code FROM offpeak.close_period(%s)", month).code) != "ok":
            assert code == "in_flight"


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cuts=st.lists(st.integers(1, HOURS - 1), unique=True, max_size=6))
async def test_closing_is_the_next_opening_and_parts_add_up_to_the_whole(
    quarter: Quarter, cuts: list[int]
) -> None:
    times = [START, *(START + timedelta(hours=hour) for hour in sorted(cuts)), END]
    for holder in quarter.holders.values():
        whole = await quarter.read(holder, START, END)
        parts = [await quarter.read(holder, *pair) for pair in pairwise(times)]
        assert parts[0].opening == whole.opening
        assert parts[-1].closing == whole.closing
        for before, after in pairwise(parts):
            assert before.closing == after.opening
        assert [each for part in parts for each in part.movements] == whole.movements
        assert whole.closing - whole.opening == sum(each.amount for each in whole.movements)


async def test_the_kinds_and_balances_are_those_of_the_books(quarter: Quarter) -> None:
    far = datetime(2100, 1, 1, tzinfo=UTC)
    books, holders = quarter.archive.books, quarter.holders
    buyer = await quarter.read(holders["buyer"], START, far)
    kinds = [each.kind for each in buyer.movements]
    assert kinds.count(MovementKind.DEPOSIT) == 1
    assert kinds.count(MovementKind.CHARGE) == JOBS // 2
    assert kinds.count(MovementKind.REFUND) == 1
    assert sum(books.balance(BUYER)) == buyer.closing
    supplier = await quarter.read(holders["supplier"], START, far)
    assert {each.kind for each in supplier.movements} == {MovementKind.ACCRUAL}
    fees = await quarter.read(holders["fees"], START, far)
    other = await quarter.read(holders["other"], START, far)
    funded = 2 * 1_000 * JOBS
    assert fees.closing + supplier.closing + buyer.closing + other.closing == funded
    earned = {MovementKind.CHARGE, MovementKind.REFUND, MovementKind.ACCRUAL}
    assert {each.kind for each in fees.movements} == earned


async def test_a_late_charge_is_on_the_next_statement_with_both_its_times(quarter: Quarter) -> None:
    february, march = START + timedelta(days=31), START + timedelta(days=59)
    holders = quarter.holders
    january = await quarter.read(holders["buyer"], START, february)
    assert all(each.happened_at == each.booked_at for each in january.movements)
    [late] = [
        each
        for each in (await quarter.read(holders["buyer"], february, march)).movements
        if each.happened_at != each.booked_at
    ]
    assert (late.booked_at, late.happened_at) == (february, february - timedelta(seconds=1))
    assert january.held >= 1_000, "until it is booked, its hold is open"


async def test_only_closed_months_are_final(quarter: Quarter) -> None:
    holder, march = quarter.holders["fees"], START + timedelta(days=59)
    assert (await quarter.read(holder, START, march)).is_final
    assert not (await quarter.read(holder, START, march + timedelta(seconds=1))).is_final


async def test_held_is_what_was_open_at_the_closing_instant(quarter: Quarter) -> None:
    holder = quarter.holders["buyer"]
    before = await quarter.read(holder, START - timedelta(days=1), START)
    assert before.held == 0
    opened = await quarter.read(holder, START, START + timedelta(seconds=2))
    assert opened.held == 1_000 * (JOBS // 2 - 1), "all but the one that ended at once"
    for each in quarter.holders.values():
        assert (await quarter.read(each, START, datetime(2100, 1, 1, tzinfo=UTC))).held == 0


async def test_a_holder_who_never_had_an_account_is_told_apart_from_an_empty_one(
    quarter: Quarter,
) -> None:
    with pytest.raises(UnknownAccount):
        await quarter.read(Holder(AccountKind.WALLET, wallet(9), ASSET), START, END)
