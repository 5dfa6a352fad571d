"""Every order of what can happen around an exit, each with a wallet of its own on a real chain.

All wallets go through their orders in step: the first event of each, a round of the watcher, the
second of each, and so on. An exit is finalized after every job has ended and been committed, which
the exit's delay guarantees. No wallet ever gets more than it paid in less what it spent, and in
the end books and contract say the same of each, to the unit.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, permutations
from typing import Any, Final

import pytest

from app.chain.calls import CANCEL_EXIT, FINALIZE_EXIT, commit_spend, deposit, request_exit
from app.wallets.errors import ExitOpen
from ledger.errors import FundsOnHold, InsufficientFunds
from tests.chain import EXIT_DELAY, OPERATOR, address_of_key
from tests.integration.treasury.watched import Wallet, Watched, has, house, watched
from tests.integration.treasury_books import BASE

__all__ = ["house", "watched"]

PAID_IN: Final = 10_000_000
HELD: Final = 2_000_000
SPENT: Final = 1_000_000
WITHDRAWN: Final = 3_000_000
PARTS: Final = 4
STEPS: Final = ("request", "spend", "settle", "commit", "withdraw")
ENDS: Final = ("finalize", "cancel", "lapse", "finalize", "reorganize", "finalize", "cancel")


@dataclass
class History:
    """One wallet, the order of its steps and how its exit ends."""

    wallet: Wallet
    order: tuple[str, ...]
    end: str
    running: Any
    spent: int = 0
    exits: bool = False


class Orders:
    """Plays all histories in step."""

    def __init__(self, watched: Watched, histories: list[History], *, relays: bool) -> None:
        self.watched = watched
        self.histories = histories
        self.relays = relays

    def commit(self, histories: list[History]) -> None:
        """Tell the chain what these wallets have spent."""
        spent = [(each.wallet.address, each.spent) for each in histories]
        if spent:
            self.watched.act(address_of_key(OPERATOR), commit_spend(1, spent))

    async def step(self, each: History, name: str) -> None:
        match name:
            case "request" if each.end != "reorganize":
                rest = await self.watched.house.treasury.available(each.wallet.address, "latest")
                self.watched.act(each.wallet.address, request_exit(rest))
                each.exits = True
            case "spend":
                outcome = self.watched.accept(each.wallet, SPENT)
                if outcome.code == "ok":
                    self.settle(each, outcome, SPENT)
                else:
                    assert outcome.code == "exit_open"
            case "settle":
                self.settle(each, each.running, HELD)
            case "withdraw":
                with suppress(ExitOpen, InsufficientFunds, FundsOnHold):
                    deadline = self.watched.now() + 3_600
                    await self.watched.house.ask(each.wallet.key, WITHDRAWN, deadline=deadline)
            case _:
                """Commitments are made for all wallets of a step at once."""

    def settle(self, each: History, outcome: Any, amount: int) -> None:
        assert self.watched.books.settle([outcome], amount * BASE) == ["ok"]
        each.spent += amount

    async def relay(self) -> None:
        """Send every withdrawal that waits."""
        if self.relays:
            await self.watched.house.withdrawals().run_once()
            while (await self.watched.house.sender().run_once()).signed:
                self.watched.chain.mine()

    async def play(self, *, looks: bool) -> None:
        """Do every step; the watcher looks after each, or not before the end."""
        for number in range(len(STEPS)):
            self.commit([h for h in self.histories if h.order[number] == "commit"])
            for each in self.histories:
                await self.step(each, each.order[number])
            if looks:
                await self.watched.look()
            await self.relay()
        await self.reorganize()

    async def reorganize(self) -> None:
        """Requests of all wallets that are to lose theirs, seen in one block that goes away."""
        self.watched.chain.pause_mining()
        for each in self.histories:
            if each.end == "reorganize":
                await each.wallet.begin_exit(1_000_000)
        self.watched.chain.mine()
        self.watched.chain.resume_mining()
        await self.watched.look()
        assert all(
            self.watched.money(each.wallet).exiting
            for each in self.histories
            if each.end == "reorganize"
        )
        self.watched.reorg(1)
        await self.watched.look()

    def ending(self, *ends: str) -> list[History]:
        return [each for each in self.histories if each.exits and each.end in ends]

    async def end(self) -> None:
        """Let every exit end, all jobs having ended and been committed before."""
        self.commit(self.histories)
        await self.watched.look()
        treasury = self.watched.house.treasury
        self.watched.chain.forward(EXIT_DELAY)
        for each in self.ending("finalize", "cancel"):
            account = await treasury.account(each.wallet.address, "latest")
            if account.exit_amount == 0:
                continue
            call = FINALIZE_EXIT if each.end == "finalize" else CANCEL_EXIT
            self.watched.act(each.wallet.address, call.data())
        self.watched.chain.forward(73 * 3_600)
        for _ in range(3):
            await self.watched.house.withdrawals().fail_overdue()
            await self.watched.finality()
            await self.watched.house.sender().run_once()

    async def wrong(self) -> list[tuple[tuple[str, ...], str, object]]:
        """The histories whose wallet has not what is its own, by the books or on chain."""
        found: list[tuple[tuple[str, ...], str, object]] = []
        for each in self.histories:
            account = await self.watched.house.treasury.account(each.wallet.address, "latest")
            own = PAID_IN - account.withdrawn - each.spent
            left = account.deposited - account.withdrawn - account.spent
            left_all = each.end == "finalize" and each.exits and each.order[0] == "request"
            money = self.watched.money(each.wallet)
            if money != has(left) or left != own or own < 0 or (left_all and left):
                found.append((each.order, each.end, (money, account)))
        return found


@pytest.mark.parametrize(
    ("part", "looks", "relays"),
    [(0, True, True), (1, False, True), (2, True, False), (3, False, False)],
    ids=["seen at once", "seen late", "at once, not relayed", "late, not relayed"],
)
async def test_in_every_order_a_wallet_gets_its_money_once(
    watched: Watched, *, part: int, looks: bool, relays: bool
) -> None:
    """The 120 orders are shared out among the four; with PARTS = 1 each plays all."""
    orders = list(permutations(STEPS))[part % PARTS :: PARTS]
    rich = await watched.wallet(len(orders) * PAID_IN)
    histories = []
    for order, end in zip(orders, cycle(ENDS), strict=False):
        wallet = watched.new_wallet()
        watched.act(rich.address, deposit(wallet.address, PAID_IN, bytes(32)))
        histories.append(History(wallet, order, end, None))
    await watched.finality()
    for each in histories:
        each.running = watched.accept(each.wallet, HELD)
    played = Orders(watched, histories, relays=relays)
    await played.play(looks=looks)
    await played.end()
    assert await played.wrong() == []
    assert not watched.books.halted()
    await watched.check()
