"""Amounts at the edge of what the ledger can hold: one wallet's harm nobody else."""

from tests.integration.treasury.house import house
from tests.integration.treasury.watched import Watched, has, watched

__all__ = ["house", "watched"]

HALF = 5_000_000_000 * 1_000_000
"""Base units: twice this is more than a bigint of nano holds."""


async def test_deposits_beyond_what_a_wallet_can_hold_stop_nobody_elses(watched: Watched) -> None:
    giant, other = await watched.wallet(2 * HALF), await watched.wallet()
    await giant.pay_in(HALF)
    await giant.pay_in(HALF)
    await other.pay_in(3_000_000)
    watched.chain.finalize()
    for _ in range(2):
        await watched.look()
    assert watched.money(giant) == has(HALF)
    assert watched.money(other) == has(3_000_000)
    assert watched.cursor() == watched.chain.height() - 2
