"""Deposits and reorganizations, as the watcher books them from a real chain."""

import pytest

from app.chain.calls import AuthorizedDeposit, deposit_with_permit
from app.chain.contracts import TokenContract
from app.chain.endpoint import RpcLimits
from app.chain.errors import TooManyLogs
from app.chain.rpc import open_rpc
from ledger.token_messages import Permit, ReceiveWithAuthorization
from tests.chain import CHAIN_ID
from tests.integration.treasury.watched import (
    SAFE_LIMIT,
    Wallet,
    Watched,
    has,
    house,
    watched,
)

__all__ = ["house", "watched"]

FAR = 4_000_000_000


async def test_a_small_deposit_counts_at_safe_and_a_large_one_at_finalized(
    watched: Watched,
) -> None:
    small, large = await watched.wallet(), await watched.wallet()
    watched.chain.pause_mining()
    await large.begin_pay_in(SAFE_LIMIT + 1)
    await small.begin_pay_in(SAFE_LIMIT)
    watched.chain.mine()
    watched.chain.resume_mining()
    await watched.look()
    assert watched.events() == [("deposited", "seen"), ("deposited", "seen")]
    watched.chain.mine()
    await watched.look()
    assert watched.money(small) == has(SAFE_LIMIT)
    assert sorted(watched.events()) == [("deposited", "booked"), ("deposited", "seen")]
    await watched.finality()
    assert watched.money(large) == has(SAFE_LIMIT + 1)
    assert watched.cursor() == watched.chain.height() - 2
    await watched.check()


async def test_many_small_deposits_add_up_to_the_limit_and_the_rest_waits(
    watched: Watched,
) -> None:
    wallet = await watched.wallet()
    watched.chain.pause_mining()
    for _ in range(3):
        await wallet.begin_pay_in(SAFE_LIMIT // 2)
    watched.chain.mine(2)
    watched.chain.resume_mining()
    await watched.look()
    assert watched.money(wallet) == has(SAFE_LIMIT)
    await watched.look()
    assert watched.money(wallet) == has(SAFE_LIMIT)
    await watched.finality()
    assert watched.money(wallet) == has(3 * (SAFE_LIMIT // 2))
    # what is final does not count against the limit any more
    await wallet.pay_in(SAFE_LIMIT)
    watched.chain.mine()
    await watched.look()
    assert watched.money(wallet) == has(3 * (SAFE_LIMIT // 2) + SAFE_LIMIT)
    await watched.check()


async def test_every_way_to_deposit_credits_its_beneficiary_and_leaves_no_plain_transfer(
    watched: Watched,
) -> None:
    payer, friend, place = await watched.wallet(), await watched.wallet(), watched.house.contracts
    token = TokenContract(watched.house.rpc, place.token)
    domain = await token.expected_domain(CHAIN_ID, "latest")
    await payer.pay_in(1_000_000, to=friend.address)
    permit = Permit(
        owner=payer.address, spender=place.treasury, value=2_000_000, nonce=0, deadline=FAR
    )
    signature = payer.key.sign(permit.digest(domain))
    data = deposit_with_permit(
        payer.address, 2_000_000, bytes(32), deadline=FAR, signature=signature
    )
    await friend.send(place.treasury, data)
    wanted = AuthorizedDeposit(
        payer=payer.address,
        beneficiary=friend.address,
        amount=4_000_000,
        ref=bytes(32),
        valid_after=0,
        valid_before=FAR,
    )
    receive = ReceiveWithAuthorization(
        from_=payer.address,
        to=place.treasury,
        value=4_000_000,
        valid_after=0,
        valid_before=FAR,
        nonce=wanted.nonce(),
    )
    await friend.send(place.treasury, wanted.data(payer.key.sign(receive.digest(domain))))
    await watched.finality()
    assert watched.events() == [("deposited", "booked")] * 3
    assert (watched.money(payer), watched.money(friend)) == (has(2_000_000), has(5_000_000))
    await watched.check()


async def test_a_reorganization_below_the_credit_depth_leaves_no_trace_in_the_books(
    watched: Watched,
) -> None:
    wallet = await watched.wallet()
    await wallet.pay_in(5_000_000)
    await watched.look()
    watched.reorg(1)
    watched.chain.mine()
    await watched.look()
    assert watched.events() == [("deposited", "orphaned")]
    await watched.finality()
    assert watched.books.rows("SELECT FROM offpeak.transfer") == []
    await watched.check()


async def credited_at_safe(watched: Watched, amount: int) -> Wallet:
    """A wallet whose deposit is booked and can still be reorganized away."""
    wallet = await watched.wallet()
    await wallet.pay_in(amount)
    watched.chain.mine()
    await watched.look()
    assert watched.money(wallet) == has(amount)
    return wallet


async def test_a_reorganization_of_a_credited_deposit_takes_back_what_is_there(
    watched: Watched,
) -> None:
    wallet = await credited_at_safe(watched, 5_000_000)
    watched.reorg(2)
    await watched.look()
    assert watched.events() == [("deposited", "orphaned")]
    assert watched.money(wallet) == has(0)
    await watched.finality()
    await watched.check()


async def test_money_held_or_spent_is_owed_and_a_release_or_a_deposit_covers_it(
    watched: Watched,
) -> None:
    wallet = await credited_at_safe(watched, 10_000_000)
    watched.spend(wallet, 3_000_000)
    held = watched.accept(wallet, 4_000_000)
    watched.reorg(2)
    await watched.look()
    assert watched.money(wallet) == has(0, held=4_000_000, owed=7_000_000)
    assert watched.accept(wallet, 1).code == "wallet_owes"
    await watched.check()
    assert watched.books.end(held.job_id) == "ok"
    await watched.look()
    assert watched.money(wallet) == has(0, owed=3_000_000)
    await wallet.pay_in(5_000_000)
    await watched.finality()
    assert watched.money(wallet) == has(2_000_000)
    assert watched.accept(wallet, 2_000_000).code == "ok"
    await watched.check()


@pytest.mark.parametrize("spent", [0, 6_000_000])
async def test_the_same_transaction_in_another_block_is_credited_once(
    watched: Watched, spent: int
) -> None:
    wallet = await watched.wallet()
    signed = await wallet.pay_in(10_000_000)
    watched.chain.mine()
    await watched.look()
    if spent:
        watched.spend(wallet, spent)
    watched.reorg(2, signed)
    await watched.look()
    assert sorted(watched.events()) == [("deposited", "booked"), ("deposited", "orphaned")]
    await watched.finality()
    assert watched.money(wallet) == has(10_000_000 - spent)
    [row] = watched.books.rows(
        "SELECT count(DISTINCT tx_hash) AS txs FROM offpeak.chain_event WHERE kind = 'deposited'"
    )
    assert row.txs == 1
    await watched.check()


async def test_a_final_block_that_is_gone_is_noticed_and_its_deposits_are_owed(
    watched: Watched,
) -> None:
    wallet = await watched.wallet()
    await wallet.pay_in(20_000_000)
    await watched.finality()
    watched.spend(wallet, 5_000_000)
    watched.reorg(3)
    watched.chain.finalize()
    await watched.look()
    assert watched.money(wallet) == has(0, owed=5_000_000)
    assert watched.cursor() == watched.chain.height() - 2
    await watched.check()


@pytest.mark.parametrize("blocks", [1, 3])
async def test_ranges_are_bounded_and_nothing_between_them_is_lost(
    watched: Watched, blocks: int
) -> None:
    wallet = await watched.wallet()
    for _ in range(4):
        await wallet.pay_in(1_000_000)
        watched.chain.mine(3)
    watched.chain.finalize()
    watched.watcher = watched.new_watcher(range_blocks=blocks)
    rounds = 0
    while not await watched.look():
        rounds += 1
    assert rounds == (watched.chain.height() - 1) // (20 * blocks)
    assert watched.money(wallet) == has(4_000_000)
    await watched.check()


async def test_dust_that_fills_blocks_makes_ranges_smaller_and_stops_nothing(
    watched: Watched,
) -> None:
    wallet = await watched.wallet()
    for _ in range(6):
        await wallet.transfer(1)
    await wallet.pay_in(5)
    watched.chain.mine(2)
    async with open_rpc([watched.chain.url], RpcLimits(log_count=2)) as rpc:
        watcher = watched.new_watcher(rpc, range_blocks=64)
        refused = 0
        for _ in range(40):
            try:
                if await watcher.run_once():
                    break
            except TooManyLogs:
                refused += 1
    assert refused > 0
    assert watched.cursor() == watched.chain.height() - 2
    assert watched.money(wallet) == has(5)
    await watched.check()
