"""Random histories of one wallet on chain and off chain: the money is never taken twice.

The contract is a few lines of Python with the rules of `Treasury.sol` (clamped spends, exits that
shrink with what is left); the books are the real ones. Events are booked as a watcher would:
deposits and exit requests as they are seen, everything else once it is final. An exit is
finalized only after the jobs before it have ended and been committed, which the exit's delay
guarantees; after each step the ledger check's rules hold.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.engines import Cluster
from tests.integration.books import Order, Seller, wallet
from tests.integration.treasury_books import BASE, Seen, TreasuryBooks

BUYER = wallet(1)
FAR = ("ready_at", "4000000000")
AT_ONCE = ("deposited", "exit-requested")
SETTLED = ["ok"]

amounts = st.integers(1, 30)


@dataclass(slots=True)
class Contract:
    """What `Treasury.sol` keeps of one wallet, base units."""

    deposited: int = 0
    withdrawn: int = 0
    spent: int = 0
    exit: int = 0
    used: set[bytes] = field(default_factory=set)

    @property
    def available(self) -> int:
        return self.deposited - self.withdrawn - self.spent

    def clamp(self) -> bool:
        """Cut the exit to what is left; say whether that was less."""
        before, self.exit = self.exit, min(self.exit, self.available)
        return self.exit < before


class TreasuryMachine(RuleBasedStateMachine):
    """Plays one history. `cluster` is set by the test."""

    cluster: Cluster
    ends: ClassVar[list[str]]
    """What the histories reached."""

    def __init__(self) -> None:
        super().__init__()
        self.url = self.cluster.create()
        self.books = TreasuryBooks(self.url)
        self.contract = Contract()
        self.waiting: list[UUID] = []
        """Events that are not final yet, in the chain's order."""
        self.last_deposit: tuple[UUID, int] | None = None
        """The newest event, when it is a deposit that can still be reorganized away."""
        self.running: list[Any] = []
        self.before_exit: list[Any] = []
        self.pending: dict[UUID, tuple[bytes, int]] = {}
        self.net = 0
        self.is_committed = True
        self.was_reorganized = False

    def teardown(self) -> None:
        if hasattr(self, "seller"):
            self.end_everything()
        self.books.connection.close()
        self.cluster.drop(self.url)

    @initialize()
    def open_market(self) -> None:
        self.seller: Seller = self.books.seller(8, ask=100)
        self.deposit(20)
        self.withdraw(3)
        [(digest, amount)] = self.pending.values()
        self.pay(digest, amount)

    def emit(
        self, kind: str, amount: int, ref: bytes | None = None, *extra: tuple[str, str]
    ) -> UUID:
        event = self.books.see(Seen(kind, BUYER, amount, self.books.next_block(), extra, ref))
        if kind in AT_ONCE:
            assert self.books.book(event) == "ok"
        else:
            self.waiting.append(event)
        self.last_deposit = (event, amount) if kind == "deposited" else None
        return event

    # --- the chain --------------------------------------------------------------------------

    @rule(amount=amounts)
    def deposit(self, amount: int) -> None:
        self.contract.deposited += amount
        self.emit("deposited", amount)

    @precondition(lambda self: self.last_deposit is not None)
    @rule()
    def reorganize(self) -> None:
        assert self.last_deposit is not None
        event, amount = self.last_deposit
        if self.contract.available - self.contract.exit < amount:
            return  # replayed without it, an older transaction would fail: another history
        self.contract.deposited -= amount
        assert self.books.orphan(event) == "ok"
        self.was_reorganized = True
        self.last_deposit = None

    @rule(share=st.integers(1, 4))
    def request_exit(self, share: int) -> None:
        amount = self.contract.available * share // 4
        if amount == 0:
            return
        self.contract.exit = amount
        self.before_exit = list(self.running)
        self.emit("exit-requested", amount, None, FAR)

    @rule()
    def cancel_exit(self) -> None:
        if self.contract.exit:
            self.contract.exit = 0
            self.emit("exit-cancelled", 0)

    @precondition(lambda self: self.contract.exit > 0)
    @rule()
    def finalize_exit(self) -> None:
        """The delay is over: what ran when it began has ended and been committed."""
        for job in self.before_exit:
            if job in self.running:
                self.settle(job, 1)
        self.commit()
        amount, self.contract.exit = self.contract.exit, 0
        if amount:
            self.contract.withdrawn += amount
            self.emit("exit-finalized", amount)
            self.ends.append("exit")

    @rule()
    def finality(self) -> None:
        for event in self.waiting:
            assert self.books.book(event) == "ok"
        self.waiting.clear()
        self.last_deposit = None

    @rule()
    def commit(self) -> None:
        wanted = -(-self.net // BASE)
        self.contract.spent = max(
            self.contract.spent,
            min(wanted, self.contract.deposited - self.contract.withdrawn),
        )
        self.emit("spend-committed", self.contract.spent, None, ("wanted", str(wanted)))
        self.clamp_exit()

    def clamp_exit(self) -> None:
        if self.contract.clamp():
            self.emit("exit-reduced", self.contract.exit)

    # --- the wallet off chain ---------------------------------------------------------------

    @rule(amount=st.integers(1, 9_000))
    def accept(self, amount: int) -> None:
        order = Order(
            payer=BUYER, amount=amount, candidates=(self.seller.deployment_id,), per_request=amount
        )
        money = self.books.money(BUYER)
        [outcome] = self.books.accept([order])
        if outcome.code == "ok":
            assert not money.exiting
            assert money.owed == 0
            self.running.append(outcome)

    @precondition(lambda self: bool(self.running))
    @rule(data=st.data())
    def end_one(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.running))
        if data.draw(st.booleans()):
            self.settle(job, 1)
        else:
            self.running.remove(job)
            assert self.books.end(job.job_id) == "ok"

    def settle(self, job: Any, share: int) -> None:
        """Charge the whole of a job's hold."""
        self.running.remove(job)
        held = self.books.one("SELECT amount FROM offpeak.hold WHERE id = %s", job.job_id).amount
        assert self.books.settle([job], held // share) == SETTLED
        self.net += held // share
        self.is_committed = False

    @rule(amount=amounts)
    def withdraw(self, amount: int) -> None:
        asked = self.books.withdraw(BUYER, amount)
        if asked.code == "ok":
            self.pending[asked.id] = (asked.digest, amount)

    @precondition(lambda self: bool(self.pending))
    @rule(data=st.data())
    def relay(self, data: st.DataObject) -> None:
        digest, amount = self.pending[data.draw(st.sampled_from(list(self.pending)))]
        if digest not in self.contract.used and amount <= self.contract.available:
            self.pay(digest, amount)

    def pay(self, digest: bytes, amount: int) -> None:
        self.contract.used.add(digest)
        self.contract.withdrawn += amount
        self.emit("withdrawn", amount, digest, ("fee", "0"))
        self.clamp_exit()
        self.ends.append("withdrawal")

    @precondition(lambda self: bool(self.pending))
    @rule(data=st.data())
    def deadline_passes(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(list(self.pending)))
        digest, _ = self.pending[chosen]
        if digest not in self.contract.used:
            del self.pending[chosen]
            assert self.books.fail(chosen) == "ok"

    @rule()
    def cover(self) -> None:
        self.books.cover()

    # --- what always holds ------------------------------------------------------------------

    @invariant()
    def the_books_are_clean(self) -> None:
        if hasattr(self, "seller"):
            assert self.books.broken_rules() == []
            assert not self.books.halted()

    def end_everything(self) -> None:
        """Let all of it end: then the chain owes the wallet what the ledger says, to the unit."""
        for job in list(self.running):
            self.settle(job, 1)
        self.commit()
        self.cancel_exit()
        self.finality()
        for chosen, (digest, _) in self.pending.items():
            code = self.books.fail(chosen)
            assert code == ("paid" if digest in self.contract.used else "ok")
        self.books.cover()
        money = self.books.money(BUYER)
        assert (money.held, money.aside, money.pending, money.exiting) == (0, 0, 0, False)
        assert self.books.broken_rules() == []
        on_chain = self.contract.deposited - self.contract.withdrawn
        assert money.total == on_chain * BASE - self.net
        if not self.was_reorganized:
            assert money.owed == 0
            assert money.available // BASE == self.contract.available
        self.leave()

    def leave(self) -> None:
        """Take all that is left by an exit: nothing but a part of a base unit stays behind."""
        if self.contract.available:
            self.request_exit(4)
            self.finalize_exit()
            self.finality()
            money = self.books.money(BUYER)
            assert (money.available < BASE, money.owed, money.exiting) == (True, 0, False)
            assert self.books.broken_rules() == []


def test_random_histories_never_pay_a_wallet_twice(cluster: Cluster) -> None:
    ends: list[str] = []
    machine = type("Machine", (TreasuryMachine,), {"cluster": cluster, "ends": ends})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    assert {"exit", "withdrawal"} <= set(ends)
