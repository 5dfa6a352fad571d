"""Deposits, reorganizations and plain transfers, as the watcher books them from a real chain."""

from tests.integration.treasury.watched import SAFE_LIMIT, Watched, has, house, watched

__all__ = ["house", "watched"]


async def test_a_small_deposit_counts_at_safe_and_a_large_one_at_finalized(
    watched: Watched,
) -> None:
    small, large = await watched.wallet(), await watched.wallet()
    await large.pay_in(SAFE_LIMIT + 1)
    await small.pay_in(SAFE_LIMIT)
    await watched.look()
    assert watched.events() == [("deposited", "seen"), ("deposited", "seen")]
    watched.chain.mine()
    await watched.look()
    assert watched.money(small) == has(SAFE_LIMIT)
    await watched.finality()
    assert watched.money(large) == has(SAFE_LIMIT + 1)
    assert watched.cursor() == watched.chain.height() - 2
    await watched.check()
