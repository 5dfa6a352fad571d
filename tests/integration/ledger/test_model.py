"""The database's ledger against a plain-Python one, over random histories.

Reserve, settle, release, expire, duplicate, retry and crash are played on both; after every step
balances, holds, slots and sums agree. A crash is a call whose connection dies before or after the
commit, and whose caller then does what the gateway does: asks again.
"""

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID, uuid4

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from ledger.errors import FundsOnHold, InsufficientFunds
from ledger.holds import Wallet
from ledger.money import Nano
from tests.engines import Cluster
from tests.integration.books import Books, Order, Seller, wallet

BUYERS = [wallet(n) for n in range(3)]
SLOTS = (2, 3)

amounts = st.integers(1, 500)
buyers = st.sampled_from(BUYERS)
crashes = st.sampled_from(["no", "no", "no", "before commit", "after commit"])


class LedgerMachine(RuleBasedStateMachine):
    """Plays one history. `cluster` is set by the test."""

    cluster: Cluster
    settled: ClassVar[list[int]]
    """Jobs that ended in each history."""

    jobs = Bundle("jobs")
    ended = Bundle("ended")

    def __init__(self) -> None:
        super().__init__()
        self.url = self.cluster.create()
        self.books = Books(self.url)
        self.owner = Books(self.url, role="none")
        self.wallets = {buyer: Wallet() for buyer in BUYERS}
        self.payer_of: dict[UUID, Any] = {}
        self.lease_of: dict[UUID, Any] = {}
        self.ending: list[Any] = []
        self.funded = 0

    def teardown(self) -> None:
        self.settled.append(self.books.one("SELECT count(*) AS n FROM offpeak.hold_resolution").n)
        self.books.connection.close()
        self.owner.connection.close()
        self.cluster.drop(self.url)

    @initialize()
    def open_market(self) -> None:
        self.sellers: list[Seller] = [self.books.seller(slots) for slots in SLOTS]
        self.places = tuple(s.deployment_id for s in self.sellers)

    def occupied_in_model(self) -> int:
        return len(self.lease_of) + len(self.ending)

    # --- steps ------------------------------------------------------------------------------

    @rule(buyer=buyers, amount=amounts)
    def deposit(self, buyer: Any, amount: int) -> None:
        self.books.fund(buyer, amount)
        self.wallets[buyer] = self.wallets[buyer].credit(Nano(amount))
        self.funded += amount

    @rule(
        target=jobs,
        orders=st.lists(st.tuples(buyers, amounts), min_size=1, max_size=5),
        duplicated=st.booleans(),
        crash=crashes,
    )
    def reserve(self, *, orders: list[tuple[Any, int]], duplicated: bool, crash: str) -> Any:
        placed = [Order(payer=b, amount=a, candidates=self.places) for b, a in orders]
        sent = [*placed, *placed] if duplicated else placed
        if crash != "no":
            self.lose_the_answer(lambda books: books.accept(sent), commit=crash == "after commit")
        outcomes = self.books.accept(sent)[: len(placed)]
        accepted = []
        for order, outcome in zip(placed, outcomes, strict=True):
            expected = self.reserve_in_model(order)
            if expected == "ok" and outcome.code == "duplicate":
                assert crash == "after commit"
                [found] = self.books.rows(
                    "SELECT *, id AS lease_id, 'ok' AS code FROM offpeak.lease WHERE job_id = %s",
                    order.job_id,
                )
            else:
                found = outcome
            assert found.code == expected
            if expected == "ok":
                self.lease_of[order.job_id] = found
                accepted.append(order.job_id)
        return multiple(*accepted)

    def lose_the_answer(self, call: Callable[[Books], object], *, commit: bool) -> None:
        """Make a call on a connection that dies before its answer arrives."""
        with Books(self.url) as other:
            other.connection.autocommit = False
            call(other)
            if commit:
                other.connection.commit()
            else:
                other.connection.rollback()

    def reserve_in_model(self, order: Order) -> str:
        before = self.wallets[order.payer]
        try:
            after = before.place_hold(order.job_id, Nano(order.amount))
        except FundsOnHold:
            return "funds_on_hold"
        except InsufficientFunds:
            return "insufficient_funds"
        if self.occupied_in_model() >= sum(SLOTS):
            return "no_slot"
        self.wallets[order.payer] = after
        self.payer_of[order.job_id] = order.payer
        self.lease_of[order.job_id] = None
        return "ok"

    @rule(
        target=ended,
        job=consumes(jobs),
        share=st.integers(0, 100),
        twice=st.booleans(),
        crash=crashes,
    )
    def settle(self, *, job: UUID, share: int, twice: bool, crash: str) -> UUID:
        payer = self.payer_of[job]
        charge = Nano(self.wallets[payer].open_holds[job] * share // 100)
        lease = self.lease_of.pop(job)
        if crash != "no":
            self.lose_the_answer(
                lambda books: books.settle([lease], charge), commit=crash == "after commit"
            )
        codes = self.books.settle([lease, lease] if twice else [lease], charge)
        first = "duplicate" if crash == "after commit" else "ok"
        assert codes == [first, "duplicate"][: len(codes)]
        self.wallets[payer] = self.wallets[payer].settle(job, charge)
        return job

    @rule(job=jobs)
    def settle_above_the_hold(self, job: UUID) -> None:
        amount = self.wallets[self.payer_of[job]].open_holds[job]
        assert self.books.settle([self.lease_of[job]], amount + 1) == ["over_hold"]

    @rule(
        target=ended,
        job=consumes(jobs),
        state=st.sampled_from(["failed", "cancelled"]),
        crash=crashes,
    )
    def release(self, job: UUID, state: str, crash: str) -> UUID:
        payer = self.payer_of[job]
        if crash != "no":
            self.lose_the_answer(
                lambda books: books.end(job, state=state), commit=crash == "after commit"
            )
        expected = "stale" if crash == "after commit" else "ok"
        assert self.books.end(job, state=state) == expected
        self.lease_of.pop(job)
        self.wallets[payer] = self.wallets[payer].release(job)
        return job

    @rule(target=ended, job=consumes(jobs))
    def expire(self, job: UUID) -> UUID:
        self.owner.connection.execute(
            "UPDATE offpeak.job SET deadline_at = now() - interval '3 s' WHERE id = %s", (job,)
        )
        [row] = self.books.rows("SELECT * FROM offpeak.expire_due(100)")
        assert (row.code, row.job_id) == ("ok", job)
        payer = self.payer_of[job]
        self.wallets[payer] = self.wallets[payer].expire(job)
        self.ending.append(self.lease_of.pop(job))
        return job

    @rule()
    def engine_confirms(self) -> None:
        for lease in self.ending:
            self.books.one(
                "SELECT offpeak.confirm_leases(%s, %s, %s)",
                [lease.lease_id],
                [lease.agent_id],
                ["lost"],
            )
        self.ending.clear()

    @rule(job=jobs)
    def move(self, job: UUID) -> None:
        moved = self.books.reassign(self.lease_of[job].lease_id, self.places, fault=False)
        if moved.code == "ok":
            self.lease_of[job] = moved
        elif moved.code == "queued":
            placed = self.books.one(
                "SELECT * FROM offpeak.place_queued_many(%s::uuid[], %s::uuid[], %s::text[])",
                [job],
                [uuid4()],
                ["{" + ",".join(map(str, self.places)) + "}"],
            )
            assert placed.code == "ok", "the slot it left is free"
            self.lease_of[job] = placed
        else:
            assert moved.code == "exhausted"

    @rule(job=ended)
    def touch_what_has_ended(self, job: UUID) -> None:
        assert self.books.end(job) == "stale"

    # --- what always holds ------------------------------------------------------------------

    @invariant()
    def balances_agree(self) -> None:
        for buyer, model in self.wallets.items():
            if model != Wallet():
                assert self.books.balance(buyer) == (model.available, model.held)

    @invariant()
    def slots_are_the_leases_that_hold_them(self) -> None:
        occupied = sum(self.books.occupied(s) for s in getattr(self, "sellers", ()))
        assert occupied == self.occupied_in_model()

    @invariant()
    def no_nano_is_made_or_lost(self) -> None:
        row = self.books.one(
            "SELECT coalesce((SELECT sum(available + held) FROM offpeak.wallet_balance), 0)"
            " + coalesce((SELECT sum(charged) FROM offpeak.hold_resolution), 0) AS total"
        )
        assert row.total == self.funded


def test_random_histories_agree_with_the_model(cluster: Cluster) -> None:
    settled: list[int] = []
    machine = type("Machine", (LedgerMachine,), {"cluster": cluster, "settled": settled})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    assert sum(settled) > 0


def test_a_broken_invariant_of_the_books_raises(fresh_database_url: str) -> None:
    with Books(fresh_database_url) as books:
        books.fund(BUYERS[0], 10)
        with pytest.raises(psycopg.errors.CheckViolation):
            books.fund(BUYERS[0], -11)
