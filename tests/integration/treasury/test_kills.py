"""kill -9 between every two steps of a withdrawal: exactly one payout each, and the books agree."""

import multiprocessing
import random
import signal

import pytest

from tests.integration.treasury.house import House, house
from tests.integration.treasury.mortal import Death, Post, mortal_worker

__all__ = ["house"]

ROUNDS = 50
BOUNDARIES = 14
"""Of one withdrawal that nothing disturbs: enqueue, sign, send, note, mine, finish, each twice."""
AMOUNT = 100_000


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    """A server that has everything imported and forks a worker in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.integration.treasury.mortal"])
    return context


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_worker_killed_between_any_two_steps_pays_each_withdrawal_exactly_once(
    house: House, processes: multiprocessing.context.ForkServerContext
) -> None:
    chance = random.Random(20_300_101)
    wallet = await house.new_wallet()
    post = Post(house.url, house.contracts.chain.url, house.contracts.treasury)
    asked, killed = [], 0
    for number in range(ROUNDS):
        asked.append(await house.ask(wallet, AMOUNT + number))
        death = Death(number % BOUNDARIES if number % 2 else None)
        worker = processes.Process(target=mortal_worker, args=(post, 4, death))
        worker.start()
        if death.at is None and number % 6:  # from outside, at any moment
            worker.join(chance.uniform(0, 0.25))
            worker.kill()
        worker.join(30)
        killed += worker.exitcode == -signal.SIGKILL
        assert worker.exitcode in {0, -signal.SIGKILL}
        house.contracts.chain.finalize()
        await house.book()
    assert killed >= ROUNDS // 2, killed
    await house.settle(8)
    assert {house.withdrawal(each.id).state for each in asked} == {"paid"}
    paid = await house.payments(wallet.address)
    assert sorted(paid) == [AMOUNT + number for number in range(ROUNDS)]
    assert await house.tokens(wallet.address) == sum(paid)
    sent = [row for row in house.transactions() if row.nonce is not None]
    assert len({row.nonce for row in sent}) == len(sent) == ROUNDS
    await house.check_books()
