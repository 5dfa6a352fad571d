"""Exits without us, as the watcher follows them from a real chain."""

import pytest

from app.chain.calls import commit_spend
from app.wallets.errors import ExitOpen, WalletOwes
from tests.chain import EXIT_DELAY, OPERATOR
from tests.integration.treasury.watched import Wallet, Watched, has, house, watched

__all__ = ["house", "watched"]

WINDOW = 72 * 3_600


async def paid_in(watched: Watched, amount: int = 10_000_000) -> Wallet:
    """A wallet with money, final."""
    wallet = await watched.wallet()
    await wallet.pay_in(amount)
    await watched.finality()
    return wallet


async def commit(watched: Watched, wallet: Wallet, total: int) -> None:
    data = commit_spend(1, [(wallet.address, total)])
    await watched.house.act(OPERATOR, watched.house.contracts.treasury, data)


async def test_a_request_closes_the_wallet_as_soon_as_it_is_seen_at_all(watched: Watched) -> None:
    wallet = await paid_in(watched)
    held = watched.accept(wallet, 2_000_000)
    await wallet.request_exit(9_000_000)
    await watched.look()
    assert watched.events()[-1] == ("exit-requested", "booked")
    assert watched.money(wallet) == has(0, held=2_000_000, aside=8_000_000, exiting=1)
    assert watched.accept(wallet, 1).code == "exit_open"
    with pytest.raises(ExitOpen):
        await watched.house.ask(wallet.key, 1_000_000)
    assert watched.books.end(held.job_id) == "ok"  # what comes back stays in the closed wallet
    assert watched.money(wallet) == has(2_000_000, aside=8_000_000, exiting=1)
    assert watched.accept(wallet, 1).code == "exit_open"
    await watched.check()


async def test_a_cancelled_exit_opens_the_wallet_when_that_is_final(watched: Watched) -> None:
    wallet = await paid_in(watched)
    await wallet.request_exit(4_000_000)
    await watched.look()
    await wallet.cancel_exit()
    await watched.look()
    assert watched.money(wallet) == has(6_000_000, aside=4_000_000, exiting=1)
    await watched.finality()
    assert watched.money(wallet) == has(10_000_000)
    assert watched.accept(wallet, 10_000_000).code == "ok"
    await watched.check()


async def test_a_request_that_is_reorganized_away_leaves_the_wallet_as_it_was(
    watched: Watched,
) -> None:
    wallet = await paid_in(watched)
    await wallet.request_exit(4_000_000)
    await watched.look()
    assert watched.money(wallet).exiting
    watched.reorg(1)
    await watched.look()
    assert watched.money(wallet) == has(10_000_000)
    assert watched.accept(wallet, 1_000_000).code == "ok"
    await watched.finality()
    await watched.check()


async def test_a_second_request_replaces_the_first_and_comes_back_when_that_is_gone(
    watched: Watched,
) -> None:
    wallet = await paid_in(watched)
    await wallet.request_exit(4_000_000)
    await watched.finality()
    await wallet.request_exit(7_000_000)
    await watched.look()
    assert watched.money(wallet) == has(3_000_000, aside=7_000_000, exiting=1)
    watched.reorg(1)
    await watched.look()
    assert watched.money(wallet).exiting
    assert watched.money(wallet).aside >= 4_000_000
    await wallet.cancel_exit()
    await watched.finality()
    assert watched.money(wallet) == has(10_000_000)
    await watched.check()


async def test_a_wallet_leaves_while_the_treasury_is_paused_and_we_are_gone(
    watched: Watched,
) -> None:
    wallet = await paid_in(watched)
    await watched.house.pause()
    await wallet.request_exit(10_000_000)
    watched.chain.forward(EXIT_DELAY)
    before = await watched.house.tokens(wallet.address)
    await wallet.finalize_exit()
    assert await watched.house.tokens(wallet.address) == before + 10_000_000
    # we come back much later, and see request and end at once
    watched.chain.forward(90 * 86_400)
    watched.chain.finalize()
    watched.watcher = watched.new_watcher()
    assert await watched.look()
    assert watched.money(wallet) == has(0)
    await watched.check()


async def test_an_exit_that_is_not_finalized_in_its_window_lapses(watched: Watched) -> None:
    wallet = await paid_in(watched)
    await wallet.request_exit(10_000_000)
    await watched.look()
    watched.chain.forward(EXIT_DELAY + WINDOW - 60)
    await watched.finality()
    assert watched.money(wallet).exiting
    watched.chain.forward(120)
    await watched.look()
    assert watched.money(wallet).exiting  # the block that shows it is not final yet
    await watched.finality()
    assert watched.money(wallet) == has(10_000_000)
    await watched.check()


async def test_spending_that_is_committed_in_time_comes_off_the_exit(watched: Watched) -> None:
    wallet = await paid_in(watched)
    running = watched.accept(wallet, 4_000_000)
    await wallet.request_exit(10_000_000)
    await watched.look()
    assert watched.books.settle([running], 4_000_000_000) == ["ok"]
    await commit(watched, wallet, 4_000_000)
    watched.chain.forward(EXIT_DELAY)
    await wallet.finalize_exit()
    await watched.finality()
    kinds = [kind for kind, _ in watched.events()]
    assert kinds[-4:] == ["exit-requested", "spend-committed", "exit-reduced", "exit-finalized"]
    assert watched.money(wallet) == has(0)
    await watched.check()


async def test_spending_that_was_not_committed_in_time_is_owed_and_freezes_the_wallet(
    watched: Watched,
) -> None:
    wallet = await paid_in(watched)
    watched.spend(wallet, 4_000_000)
    await wallet.request_exit(10_000_000)
    watched.chain.forward(EXIT_DELAY)
    await wallet.finalize_exit()
    await watched.finality()
    assert watched.money(wallet) == has(0, owed=4_000_000)
    assert watched.accept(wallet, 1).code == "wallet_owes"
    with pytest.raises(WalletOwes):
        await watched.house.ask(wallet.key, 1_000_000)
    await wallet.pay_in(5_000_000)
    await watched.finality()
    assert watched.money(wallet) == has(1_000_000)
    await watched.check()
