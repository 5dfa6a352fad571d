"""Every job ends once: settled, failed or expired, with its money, slot and record."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from ledger.accounts import AccountKind, account_id, wallet_account
from tests.integration.books import ASSET, Books, Order, Seller, wallet
from tests.waiting import wait_until

BUYER = wallet(1)
FEES = account_id(AccountKind.FEE, "offpeak", ASSET)


def accepted(books: Books, seller: Seller, *, amount: int = 100) -> Any:
    books.fund(BUYER, amount)
    order = Order(payer=BUYER, amount=amount, candidates=(seller.deployment_id,))
    [outcome] = books.accept([order])
    assert outcome.code == "ok"
    return outcome


def late(books: Books, url: str, job: Any) -> None:
    with Books(url, role="none") as owner:
        owner.connection.execute(
            "UPDATE offpeak.job SET deadline_at = now() - interval '3 s' WHERE id = %s",
            (job.job_id,),
        )


def house(books: Books, account: object) -> int:
    return int(
        books.one(
            "SELECT coalesce(sum(CASE WHEN credit = %s THEN amount ELSE -amount END), 0)::bigint"
            " AS n FROM offpeak.transfer WHERE debit = %s OR credit = %s",
            account,
            account,
            account,
        ).n
    )


def record(books: Books, job_id: object) -> Any:
    return books.one("SELECT * FROM offpeak.usage_record WHERE record_id = %s", job_id)


def test_settling_charges_releases_the_rest_and_returns_the_slot(books: Books) -> None:
    seller = books.seller(2)
    job = accepted(books, seller)

    assert books.settle([job], 70) == ["ok"]

    assert books.balance(BUYER) == (30, 0)
    assert books.occupied(seller) == 0
    assert books.job_state(job.job_id) == "completed"
    written = record(books, job.job_id)
    assert (written.held, written.charge, written.released, written.outcome) == (100, 70, 30, 1)
    assert (written.payer_seq, written.previous_record) == (1, None)
    assert len(written.salt) == 32


def test_a_charge_never_exceeds_the_hold(books: Books, fresh_database_url: str) -> None:
    job = accepted(books, books.seller(1))

    assert books.settle([job], 101) == ["over_hold"]
    assert books.settle([job], -1) == ["over_hold"]
    assert books.balance(BUYER) == (0, 100)

    with Books(fresh_database_url, role="none") as owner, pytest.raises(psycopg.Error):
        owner.connection.execute(
            "INSERT INTO offpeak.hold_resolution VALUES (%s, 101, 'settled', 101, 0, now())",
            (job.job_id,),
        )


def test_a_zero_charge_is_a_release(books: Books) -> None:
    job = accepted(books, books.seller(1))

    assert books.settle([job], 0) == ["ok"]

    kind = books.one("SELECT kind FROM offpeak.hold_resolution").kind
    assert kind == "released"
    assert books.balance(BUYER) == (100, 0)


def test_a_second_result_changes_nothing(books: Books) -> None:
    job = accepted(books, books.seller(1))

    assert books.settle([job, job], 70) == ["ok", "duplicate"]
    assert books.settle([job], 30) == ["duplicate"]
    assert books.end(job.job_id) == "stale"
    assert books.balance(BUYER) == (30, 0)


def test_a_late_result_for_a_lost_lease_is_refused(books: Books) -> None:
    sellers = [books.seller(1) for _ in range(2)]
    places = [s.deployment_id for s in sellers]
    old = accepted(books, sellers[0])
    new = books.reassign(old.lease_id, places)
    assert new.code == "ok"

    assert books.settle([old], 70) == ["stale"]
    assert books.balance(BUYER) == (0, 100)
    assert books.settle([new], 60) == ["ok"]
    assert books.settle([old], 70) == ["stale"]
    assert books.balance(BUYER) == (40, 0)
    assert [books.occupied(s) for s in sellers] == [0, 0]


def test_a_result_from_an_agent_that_does_not_hold_the_lease_is_refused(books: Books) -> None:
    sellers = [books.seller(1) for _ in range(2)]
    job = accepted(books, sellers[0])
    thief = job._replace(agent_id=sellers[1].agent_id)

    assert books.settle([thief], 70) == ["stale"]
    assert books.job_state(job.job_id) == "accepted"


def test_a_failed_job_costs_the_buyer_nothing_and_has_a_record(books: Books) -> None:
    seller = books.seller(1)
    job = accepted(books, seller)

    assert books.end(job.job_id) == "ok"

    assert books.balance(BUYER) == (100, 0)
    assert books.occupied(seller) == 0
    written = record(books, job.job_id)
    assert (written.charge, written.released, written.outcome) == (0, 100, 2)
    cost = books.one("SELECT * FROM offpeak.cost_entry")
    assert (cost.kind, cost.amount) == ("failed_work", 0)
    assert house(books, FEES) == 0


def test_the_supplier_is_paid_for_served_time_and_for_failures_that_are_not_its_own(
    books: Books, fresh_database_url: str
) -> None:
    seller = books.seller(2, ask=10_000)
    served, failed = (accepted(books, seller, amount=100_000) for _ in range(2))
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(
            "UPDATE offpeak.lease SET started_at = started_at - interval '2 s'"
        )

    books.settle([served], 100_000)
    books.end(failed.job_id, paid=True)

    costs = books.rows("SELECT kind, amount, slot_ms FROM offpeak.cost_entry ORDER BY kind")
    assert [c.kind for c in costs] == ["failed_work", "served"]
    for cost in costs:
        assert cost.amount == 10_000 * cost.slot_ms // 1_000
        assert cost.slot_ms >= 2_000
    assert house(books, FEES) == 100_000 - sum(c.amount for c in costs)


def test_slot_time_beyond_the_cap_is_not_paid(books: Books, fresh_database_url: str) -> None:
    seller = books.seller(1, ask=1_000)
    job = accepted(books, seller, amount=100_000)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.lease SET started_at = now() - interval '1 hour'")

    books.settle([job], 100_000)

    assert books.one("SELECT amount FROM offpeak.cost_entry").amount == 60 * 1_000


def test_the_supplier_is_never_paid_more_than_the_charge(
    books: Books, fresh_database_url: str
) -> None:
    seller = books.seller(1, ask=1_000)
    job = accepted(books, seller, amount=100_000)
    hour_ago(fresh_database_url)

    books.settle([job], 5_000)

    cost = books.one("SELECT amount, slot_ms FROM offpeak.cost_entry")
    assert (cost.amount, cost.slot_ms) == (5_000, 5_000)


def test_all_attempts_of_a_job_together_are_paid_at_most_its_hold(
    books: Books, fresh_database_url: str
) -> None:
    first, second = books.seller(1, ask=1_000), books.seller(1, ask=1_000)
    job = accepted(books, first, amount=70_000)
    hour_ago(fresh_database_url)
    moved = books.reassign(job.lease_id, [second.deployment_id], fault=False, paid=True)
    assert moved.code == "ok"
    hour_ago(fresh_database_url)

    books.end(job.job_id, paid=True)

    paid = books.rows("SELECT amount FROM offpeak.cost_entry ORDER BY amount")
    assert [row.amount for row in paid] == [10_000, 60_000]


def hour_ago(url: str) -> None:
    """Have every lease begin an hour ago."""
    with Books(url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.lease SET started_at = now() - interval '1 hour'")


def test_an_expired_job_ends_with_hold_and_lease_but_its_slot_waits_for_the_engine(
    books: Books, fresh_database_url: str
) -> None:
    seller = books.seller(1)
    job = accepted(books, seller)
    late(books, fresh_database_url, job)

    assert [row.code for row in books.rows("SELECT * FROM offpeak.expire_due(100)")] == ["ok"]

    assert books.job_state(job.job_id) == "expired"
    assert books.balance(BUYER) == (100, 0)
    assert books.occupied(seller) == 1, "the engine may still be running it"
    confirmed = books.one(
        "SELECT offpeak.confirm_leases(%s, %s, %s)", [job.lease_id], [seller.agent_id], ["done"]
    )
    assert confirmed[0] == 1
    assert books.occupied(seller) == 0
    assert books.settle([job], 50) == ["stale"]


def test_expiry_loses_to_a_settlement_that_was_first(books: Books, fresh_database_url: str) -> None:
    job = accepted(books, books.seller(1))
    late(books, fresh_database_url, job)
    assert books.settle([job], 10) == ["ok"]

    assert books.rows("SELECT * FROM offpeak.expire_due(100)") == []
    assert books.balance(BUYER) == (90, 0)


def test_settle_fail_and_expire_racing_end_a_job_once(
    books: Books, fresh_database_url: str
) -> None:
    seller = books.seller(16)
    jobs = [accepted(books, seller) for _ in range(16)]
    for job in jobs:
        late(books, fresh_database_url, job)

    def settle(job: Any) -> bool:
        with Books(fresh_database_url) as own:
            return own.settle([job], 60) == ["ok"]

    def fail(job: Any) -> bool:
        with Books(fresh_database_url) as own:
            return own.end(job.job_id) == "ok"

    def expire(_: Any) -> bool:
        with Books(fresh_database_url) as own:
            return bool(own.rows("SELECT * FROM offpeak.expire_due(3)"))

    with ThreadPoolExecutor(max_workers=24) as pool:
        ran = [pool.submit(act, job) for job in jobs for act in (settle, fail, expire)]
        for future in ran:
            future.result()
    books.rows("SELECT * FROM offpeak.expire_due(100)")

    ends = books.rows("SELECT * FROM offpeak.hold_resolution")
    assert len(ends) == len(jobs)
    charged = sum(end.charged for end in ends)
    assert books.balance(BUYER) == (100 * len(jobs) - charged, 0)
    sequence = [r.payer_seq for r in books.rows("SELECT payer_seq FROM offpeak.usage_record")]
    assert sorted(sequence) == list(range(1, len(jobs) + 1))


def test_records_of_a_wallet_are_numbered_and_linked(books: Books) -> None:
    seller = books.seller(3)
    jobs = [accepted(books, seller) for _ in range(3)]

    books.settle(jobs[:2], 10)
    books.end(jobs[2].job_id)

    rows = books.rows("SELECT * FROM offpeak.usage_record ORDER BY payer_seq")
    assert [r.payer_seq for r in rows] == [1, 2, 3]
    assert [r.previous_record for r in rows] == [None, rows[0].record_id, rows[1].record_id]


def test_a_job_gets_two_faulted_attempts_and_never_the_failed_agent_again(books: Books) -> None:
    sellers = [books.seller(1) for _ in range(3)]
    places = [s.deployment_id for s in sellers]
    job = accepted(books, sellers[0])

    second = books.reassign(job.lease_id, places)
    third = books.reassign(second.lease_id, places)

    assert second.code == "ok"
    assert second.agent_id != sellers[0].agent_id
    assert third.code == "exhausted"
    assert books.job_state(job.job_id) == "accepted", "the caller ends it"
    assert books.balance(BUYER) == (0, 100), "the hold is untouched by retries"


def test_faultless_moves_are_free_up_to_five_dispatches(books: Books) -> None:
    sellers = [books.seller(1) for _ in range(2)]
    places = [s.deployment_id for s in sellers]
    moved = accepted(books, sellers[0])

    codes = []
    for _ in range(5):
        moved = books.reassign(moved.lease_id, places, fault=False)
        codes.append(moved.code)
        if moved.code != "ok":
            break

    assert codes == ["ok"] * 4 + ["exhausted"]


def test_a_job_without_a_slot_waits_ahead_of_new_accepts(books: Books) -> None:
    first, second = books.seller(1), books.seller(1)
    places = [first.deployment_id, second.deployment_id]
    job = accepted(books, first)
    books.fund(BUYER, 1_000)
    blocker = Order(payer=BUYER, amount=1, candidates=(second.deployment_id,))
    [blocking] = books.accept([blocker])

    waiting = books.reassign(job.lease_id, places)
    assert waiting.code == "queued"
    assert books.job_state(job.job_id) == "queued"

    books.settle([blocking], 1)
    newcomer = Order(payer=BUYER, amount=1, candidates=(second.deployment_id,))
    assert books.accept([newcomer])[0].code == "no_slot"
    elsewhere = Order(payer=BUYER, amount=1, candidates=tuple(places))
    [other] = books.accept([elsewhere])
    assert (other.code, other.agent_id) == ("ok", first.agent_id), "it cannot go there itself"
    books.settle([other], 1)

    placed = books.one(
        "SELECT * FROM offpeak.place_queued_many(%s::uuid[], %s::uuid[], %s::text[])",
        [job.job_id],
        [uuid4()],
        ["{" + ",".join(map(str, places)) + "}"],
    )
    assert (placed.code, placed.agent_id) == ("ok", second.agent_id)
    assert books.settle([placed], 5) == ["ok"]
    assert books.accept([newcomer])[0].code == "ok"


def test_a_waiting_job_keeps_nobody_from_the_slots_of_agents_that_failed_it(books: Books) -> None:
    only = books.seller(2)
    job = accepted(books, only)
    assert books.reassign(job.lease_id, [only.deployment_id]).code == "queued"

    books.fund(BUYER, 1)
    newcomer = Order(payer=BUYER, amount=1, candidates=(only.deployment_id,))
    assert books.accept([newcomer])[0].code == "ok"


def test_house_balances_lose_nothing_to_transactions_that_commit_late(
    books: Books, fresh_database_url: str
) -> None:
    """A roll-up while an older transaction is open must leave that one's transfers for later."""
    seller = books.seller(4)
    jobs = [accepted(books, seller) for _ in range(4)]
    books.settle(jobs[:1], 10)

    with psycopg.connect(fresh_database_url) as slow:  # takes its xid first, commits last
        slow.execute("SELECT pg_current_xact_id()")
        books.settle(jobs[1:2], 10)
        books.one("SELECT offpeak.roll_up_house()")
        slow.execute(
            "INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)"
            " VALUES (gen_random_uuid(), 1, %s, %s, 5, %s, now())",
            (wallet_account(BUYER, ASSET), FEES, ASSET),
        )
    books.settle(jobs[2:], 10)

    def rolled_up() -> int:
        books.one("SELECT offpeak.roll_up_house()")
        query = "SELECT balance FROM offpeak.house_balance WHERE account_id = %s"
        return int(books.one(query, FEES).balance)

    total = house(books, FEES)
    # the horizon is the whole server's: a transaction of another test's database may hold it back
    wait_until(lambda: rolled_up() == total)
    assert house(books, FEES) == total == 5


def test_a_deposit_is_credited_once(books: Books) -> None:
    ref = Order(payer=BUYER, amount=1, candidates=()).job_id
    with books.as_operator():
        booked = [
            books.one("SELECT offpeak.credit_deposit(%s, %s, %s, 500)", ref, BUYER, ASSET)[0]
            for _ in range(2)
        ]
    assert booked == [True, False]
    assert books.balance(BUYER) == (500, 0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE offpeak.wallet_balance SET available = 10",
        "INSERT INTO offpeak.transfer SELECT * FROM offpeak.transfer",
        "DELETE FROM offpeak.hold",
        "UPDATE offpeak.job SET state = 'completed'",
        "UPDATE offpeak.deployment SET offered = 99",
        "DELETE FROM offpeak.usage_record",
        "SELECT * FROM offpeak.wallet_balance FOR UPDATE",
        "SELECT offpeak._random_salt()",
        "SELECT offpeak.credit_deposit(gen_random_uuid(), '0x1', '0x2', 5)",
        "SELECT offpeak.open_account('wallet', '0x1', '0x2')",
        "SELECT offpeak.clear_halt('I say so')",
        "UPDATE offpeak.supplier SET state = 'authorized'",
        "INSERT INTO offpeak.supplier VALUES (gen_random_uuid(), 'x', 'authorized')",
        "CREATE TABLE offpeak.own(i int)",
        "CREATE TABLE public.own(i int)",
    ],
)
def test_the_application_role_changes_money_and_slots_by_function_only(
    books: Books, statement: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        books.connection.execute(statement.encode())


def test_content_goes_after_its_time_and_digests_stay(
    books: Books, fresh_database_url: str
) -> None:
    seller = books.seller(2)
    done, running = accepted(books, seller), accepted(books, seller)
    books.settle([done], 10)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.job SET content_until = now() - interval '1 s'")

    assert books.one("SELECT offpeak.purge_content(100)")[0] == 1

    kept = {r.id: r for r in books.rows("SELECT id, request, result FROM offpeak.job")}
    assert (kept[done.job_id].request, kept[done.job_id].result) == (None, None)
    assert kept[running.job_id].request == b"sealed"
    assert books.rows("SELECT request_digest FROM offpeak.request_authorization")


def test_pruning_the_market_keeps_what_opens_the_window_of_a_deployment_at_rest(
    books: Books, fresh_database_url: str
) -> None:
    seller = books.seller(4)
    accepted(books, seller)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.capacity_event SET at = at - interval '2 days'")
        owner.connection.execute(
            "INSERT INTO offpeak.price_point VALUES"
            " ('m', 'local', now() - interval '2 days', 0, 1, 1, 1, 1, 1),"
            " ('m', 'local', now(), 0, 1, 1, 1, 1, 1)"
        )
    before = books.rows("SELECT id, occupied FROM offpeak.capacity_event ORDER BY id")

    assert books.one("SELECT offpeak.prune_market('1 day', 100)")[0] == len(before) - 1 + 1

    assert books.rows("SELECT id, occupied FROM offpeak.capacity_event") == before[-1:]
    assert len(books.rows("SELECT * FROM offpeak.price_point")) == 1


def test_an_agents_rest_doubles_each_time_to_ten_minutes_at_most(
    books: Books, fresh_database_url: str
) -> None:
    agent_id = books.seller(1).agent_id
    rests = []
    with Books(fresh_database_url, role="none") as owner:
        for _ in range(6):
            owner.connection.execute(
                "UPDATE offpeak.agent SET resting_until = least(resting_until, now())"
            )
            books.rows(
                "SELECT offpeak.note_faults(%s, %s, %s, %s)",
                [agent_id] * 3,
                [None] * 3,
                [None] * 3,
                [None] * 3,
            )
            rest = books.one("SELECT resting_until - now() AS length FROM offpeak.agent").length
            rests.append(round(rest.total_seconds() / 60))
    assert rests == [1, 2, 4, 8, 10, 10]
