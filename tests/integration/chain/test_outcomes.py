"""Blocks that are replaced, and transactions that do not go through, as our client sees them."""

from dataclasses import replace

import pytest

from app.chain import calls
from app.chain.contracts import TokenContract
from app.chain.errors import TransactionPending, TransactionRefused, TransactionReverted
from app.chain.keys import KeystoreKey
from app.chain.sending import Outgoing, prepare, send_and_wait
from ledger.hashing import keccak256
from tests.chain import ALICE, TEST_KEYS, Contracts, address_of_key


async def test_after_a_reorg_the_height_has_another_hash_and_the_state_is_without_it(
    contracts: Contracts,
) -> None:
    chain, alice = contracts.chain, address_of_key(ALICE)
    async with chain.rpc() as rpc:
        token = TokenContract(rpc, contracts.token)
        before = await token.balance_of(alice, "latest")
        minted = await chain.send_later(ALICE, contracts.token, calls.MINT.data(alice, 5))
        assert await token.balance_of(alice, minted.block_hash) == before + 5
        chain.mine()
        chain.reorg(2)
        now = await rpc.block(minted.block_number)
        assert now is not None
        assert now.hash != minted.block_hash
        assert await rpc.receipt(minted.transaction_hash) is None
        assert await token.balance_of(alice, "latest") == before
        assert await rpc.logs([contracts.token], now.number, chain.height()) == ()


async def test_a_reorg_may_take_a_transaction_along_into_another_block(
    contracts: Contracts,
) -> None:
    chain, key = contracts.chain, KeystoreKey(TEST_KEYS[ALICE])
    async with chain.rpc() as rpc:
        data = calls.MINT.data(key.address, 5)
        transaction = await prepare(rpc, key.address, Outgoing(to=contracts.token, data=data))
        signed = await key.sign(transaction)
        await rpc.send_raw(signed.raw)
        first = await rpc.receipt(signed.hash)
        assert first is not None
        chain.mine()
        chain.reorg(2, ((signed.raw, 1),))
        second = await rpc.receipt(signed.hash)
        assert second is not None
        assert second.block_number == first.block_number + 1
        assert second.block_hash != first.block_hash


async def test_a_sender_without_gas_money_is_told_the_next_step(contracts: Contracts) -> None:
    poor = KeystoreKey(bytes(31) + b"\x2b")
    outgoing = Outgoing(to=contracts.token, data=calls.MINT.data(poor.address, 5))
    async with contracts.chain.rpc() as rpc:
        transaction = await prepare(rpc, poor.address, outgoing)
        with pytest.raises(TransactionRefused) as refused:
            await send_and_wait(rpc, poor, transaction, wait_seconds=5)
        assert refused.value.outcome == "insufficient-funds"
        assert "for gas" in refused.value.next_step


async def test_a_transaction_that_reverts_when_mined_is_no_success(contracts: Contracts) -> None:
    chain, key = contracts.chain, KeystoreKey(TEST_KEYS[ALICE])
    outgoing = Outgoing(to=contracts.token, data=calls.MINT.data(key.address, 5))
    async with chain.rpc() as rpc:
        fine = await prepare(rpc, key.address, outgoing)
        doomed = replace(fine, data=calls.TRANSFER.data(contracts.treasury, 1 << 200))
        with pytest.raises(TransactionReverted):
            await send_and_wait(rpc, key, doomed, wait_seconds=5)


async def test_a_transaction_that_is_not_mined_in_time_is_pending_not_failed(
    contracts: Contracts,
) -> None:
    chain, key = contracts.chain, KeystoreKey(TEST_KEYS[ALICE])
    outgoing = Outgoing(to=contracts.token, data=calls.MINT.data(key.address, 5))
    async with chain.rpc() as rpc:
        chain.pause_mining()
        try:
            transaction = await prepare(rpc, key.address, outgoing)
            with pytest.raises(TransactionPending) as pending:
                await send_and_wait(rpc, key, transaction, wait_seconds=0.3)
        finally:
            chain.resume_mining()
            chain.mine()
        digest = keccak256((await key.sign(transaction)).raw)
        assert f"0x{digest.hex()}" in pending.value.next_step
        receipt = await rpc.receipt(digest)
        assert receipt is not None
        assert receipt.succeeded
