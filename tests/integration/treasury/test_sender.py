"""The sender on a chain that reorganizes, runs dry, is paused, or in somebody else's hands."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from app.chain.calls import PAUSE
from app.chain.keys import KeystoreKey
from app.chain.rpc import ChainRpc
from app.chain.sending import Outgoing, prepare
from app.db.engine import TREASURY_ROLE, open_database
from app.kit.errors import DatabaseUnavailable
from app.treasury.abandoning import Abandoning
from app.treasury.errors import KeyStillSends, WrongSender
from app.treasury.sender import OPERATOR_PURPOSES, Sender, SenderTerms
from tests.chain import CHAIN_ID, GUARDIAN, OPERATOR, TEST_KEYS, address_of_key
from tests.integration.treasury.house import PATIENT, House, house, operator_sender

__all__ = ["house"]

EAGER = replace(PATIENT, replace_after=timedelta(0))
GWEI = 10**9


def attempts(house: House) -> list[tuple[int, int]]:
    """Both fees of every attempt, oldest first."""
    rows = house.rows("SELECT * FROM offpeak.chain_attempt ORDER BY created_at")
    return [(int(row.max_fee), int(row.priority_fee)) for row in rows]


async def offer(rpc: ChainRpc, key: int, outgoing: Outgoing, **fields: Any) -> bytes:
    """Sign and broadcast somebody's transaction without waiting for it; its hash."""
    signer = KeystoreKey(TEST_KEYS[key])
    prepared = await prepare(rpc, signer.address, outgoing)
    signed = await signer.sign(replace(prepared, **fields))
    sent = await rpc.send_raw(signed.raw)
    assert sent.outcome == "accepted", sent
    return signed.hash


async def stranger_uses_our_nonce(house: House) -> Any:
    """Sign what waits, lose it, and mine somebody else's with its nonce; our transaction's row."""
    chain = house.contracts.chain
    chain.pause_mining()
    await house.withdrawals().run_once()
    await house.sender().run_once()
    [ours] = house.transactions()
    [attempt] = house.rows("SELECT hash FROM offpeak.chain_attempt")
    chain.ask("anvil_dropTransaction", "0x" + bytes(attempt.hash).hex())
    foreign = Outgoing(to=address_of_key(GUARDIAN), data=b"", value=1)
    await offer(house.rpc, OPERATOR, foreign, nonce=ours.nonce)
    chain.mine()
    chain.resume_mining()
    return ours


async def test_a_transaction_that_waits_too_long_is_replaced_at_its_nonce(house: House) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    house.contracts.chain.pause_mining()
    await house.withdrawals().run_once()
    sender = house.sender(rules=EAGER)
    assert (await sender.run_once()).signed == 1
    assert (await sender.run_once()).replaced == 1
    assert (await sender.run_once()).replaced == 1
    house.contracts.chain.resume_mining()
    await house.settle(4)
    fees = attempts(house)
    assert len(fees) == 3
    for before, after in pairwise(fees):
        assert all(new * 8 >= old * 9 for old, new in zip(before, after, strict=True))
    assert len({row.nonce for row in house.transactions()}) == 1
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.payments(wallet.address) == [1_000_000]
    await house.check_books()


async def test_a_risen_base_fee_is_met_by_a_replacement(house: House) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    chain = house.contracts.chain
    chain.pause_mining()
    await house.withdrawals().run_once()
    await house.sender().run_once()
    [(first, _)] = attempts(house)
    chain.ask("anvil_setNextBlockBaseFeePerGas", hex(4 * first))
    chain.mine()
    assert house.transactions()[0].state == "signed"
    work = await house.sender(rules=EAGER).run_once()
    assert work.replaced == 1
    assert attempts(house)[-1][0] >= 2 * first
    chain.resume_mining()
    chain.mine()
    await house.settle(4)
    assert house.withdrawal(asked.id).state == "paid"


async def test_a_cap_stops_replacements_and_not_the_transaction(house: House) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    house.contracts.chain.pause_mining()
    await house.withdrawals().run_once()
    await house.sender().run_once()
    [(first, _)] = attempts(house)
    work = await house.sender(rules=replace(EAGER, fee_cap=first)).run_once()
    assert (work.replaced, work.broadcast) == (0, 1)
    house.contracts.chain.resume_mining()
    house.contracts.chain.mine()
    await house.settle(3)
    assert house.withdrawal(asked.id).state == "paid"


async def test_out_of_gas_money_takes_no_nonce_and_goes_on_when_topped_up(house: House) -> None:
    operator = address_of_key(OPERATOR)
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    house.contracts.chain.set_gas_money(operator, 0)
    work = await house.round()
    assert work.gas_short > 0
    [waiting] = house.transactions()
    assert (waiting.state, waiting.nonce) == ("queued", None)
    assert waiting.last_error.startswith("gas-too-low")
    house.contracts.chain.set_gas_money(operator, 10**18)
    await house.settle(4)
    assert house.withdrawal(asked.id).state == "paid"
    await house.check_books()


async def test_a_paused_contract_keeps_withdrawals_pending_until_it_goes_on(house: House) -> None:
    wallet = await house.new_wallet()
    await house.pause()
    asked = await house.ask(wallet, 1_000_000)
    await house.settle(3)
    [waiting] = house.transactions()
    assert (waiting.state, waiting.nonce) == ("queued", None)
    assert waiting.last_error.startswith("would-revert")
    assert "EnforcedPause" in waiting.last_error
    assert house.withdrawal(asked.id).state == "pending"
    await house.unpause()
    await house.settle(4)
    assert house.withdrawal(asked.id).state == "paid"
    await house.check_books()


async def test_while_the_ledger_is_halted_nothing_is_begun_and_afterwards_it_is(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    await house.withdrawals().run_once()  # queued when the halt comes
    with house.connection() as connection:
        connection.execute("SELECT offpeak.halt_ledger('a test')")
    await house.settle(2)
    assert [row.state for row in house.transactions()] == ["cancelled"]
    assert house.withdrawal(asked.id).state == "pending"
    with house.connection("offpeak_operator") as connection:
        connection.execute("SELECT offpeak.clear_halt('a test')")
    await house.settle(4)
    assert house.withdrawal(asked.id).state == "paid"
    await house.check_books()


async def test_a_reverted_transaction_leaves_the_withdrawal_pending_and_is_made_anew(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    chain = house.contracts.chain
    chain.pause_mining()
    await house.withdrawals().run_once()
    await house.sender().run_once()
    pause = Outgoing(to=house.contracts.treasury, data=PAUSE.data())
    await offer(house.rpc, GUARDIAN, pause, priority_fee=50 * GWEI, max_fee=200 * GWEI)
    chain.mine()
    chain.resume_mining()
    chain.finalize()
    await house.settle(2)
    [reverted] = house.transactions()
    assert reverted.state == "reverted"
    assert "EnforcedPause" in reverted.last_error
    assert house.withdrawal(asked.id).state == "pending"
    await house.unpause()
    await house.round()
    assert len(house.transactions()) == 1  # not right after a revert
    with psycopg.connect(house.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE offpeak.chain_transaction SET ended_at = ended_at - interval '1 h'"
        )
    await house.settle(4)
    assert [row.state for row in house.transactions()] == ["reverted", "done"]
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.payments(wallet.address) == [1_000_000]
    await house.check_books()


async def test_a_nonce_that_a_foreign_transaction_took_is_an_alarm_and_stays(house: House) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    ours = await stranger_uses_our_nonce(house)
    work = await house.sender().run_once()
    assert work.taken == 0  # not final yet
    house.contracts.chain.finalize()
    assert (await house.sender().run_once()).taken == 1
    await house.settle(2)
    [stays] = house.transactions()
    assert (stays.state, stays.nonce) == ("signed", ours.nonce)
    assert stays.last_error.startswith("nonce-taken")
    assert house.withdrawal(asked.id).state == "pending"
    assert await house.payments(wallet.address) == []
    later = await house.ask(wallet, 2_000_000)  # what comes after it is not held up
    await house.settle(4)
    assert house.withdrawal(later.id).state == "paid"
    await house.check_books()


async def test_what_a_stranger_blocked_is_given_up_on_by_a_person_and_made_anew(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    await stranger_uses_our_nonce(house)
    abandoning = Abandoning(house.database, house.rpc, chain_id=CHAIN_ID)
    assert await abandoning.stuck(because="not final") == 0
    house.contracts.chain.finalize()
    assert await abandoning.stuck(because="sent by hand") == 1
    assert await abandoning.stuck(because="sent by hand") == 0
    await house.settle(4)
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.payments(wallet.address) == [1_000_000]
    assert [row.state for row in house.transactions()] == ["abandoned", "done"]
    await house.check_books()


async def test_a_lost_keys_transactions_are_made_anew_by_the_next_key_and_paid_once(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = [await house.ask(wallet, amount) for amount in (1_000_000, 2_000_000)]
    chain = house.contracts.chain
    chain.pause_mining()
    await house.withdrawals().run_once()
    await house.sender().run_once()
    abandoning = Abandoning(house.database, house.rpc, chain_id=CHAIN_ID)
    operator = address_of_key(OPERATOR)
    with pytest.raises(KeyStillSends):
        await abandoning.of_key(operator, sending=[operator], because="a test")
    given = await abandoning.of_key(operator, sending=[], because="the key is lost")
    assert given == 2
    # they are mined all the same, and the ones that are made anew are refused by the contract
    await house.withdrawals().run_once()
    chain.resume_mining()
    chain.mine()
    await house.settle(4)
    assert [house.withdrawal(each.id).state for each in asked] == ["paid", "paid"]
    assert sorted(await house.payments(wallet.address)) == [1_000_000, 2_000_000]
    await house.check_books()


async def test_a_reorganization_takes_a_mined_transaction_back_and_it_is_sent_again(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    await house.withdrawals().run_once()
    sender = house.sender()
    await sender.run_once()
    assert (await sender.run_once()).mined == 1
    house.contracts.chain.reorg(1)
    await sender.run_once()
    assert house.transactions()[0].state == "signed"
    await house.settle(5)
    assert house.transactions()[0].state == "done"
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.payments(wallet.address) == [1_000_000]
    await house.check_books()


async def test_a_reorganization_that_mines_it_in_another_block_is_noted(house: House) -> None:
    wallet = await house.new_wallet()
    await house.ask(wallet, 1_000_000)
    await house.withdrawals().run_once()
    sender = house.sender()
    await sender.run_once()
    await sender.run_once()
    [before] = house.transactions()
    [attempt] = house.rows("SELECT raw FROM offpeak.chain_attempt")
    house.contracts.chain.reorg(2, ((bytes(attempt.raw), 0),))
    await sender.run_once()
    await sender.run_once()
    [after] = house.transactions()
    assert after.mined_block != before.mined_block
    await house.settle(3)
    assert house.transactions()[0].state == "done"
    assert await house.payments(wallet.address) == [1_000_000]


async def test_two_workers_of_one_key_use_no_nonce_twice_and_send_nothing_twice(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = [await house.ask(wallet, 1_000_000 + n) for n in range(10)]
    other = open_database(house.url, pool_size=8, role=TREASURY_ROLE)
    try:
        for _ in range(8):
            loops = [
                replace(house.withdrawals(), database=each) for each in (house.database, other)
            ]
            await asyncio.gather(*(loop.run_once() for loop in loops))
            second = operator_sender(other, house.rpc)
            works = await asyncio.gather(house.sender().run_once(), second.run_once())
            assert any(work.held for work in works)
            house.contracts.chain.finalize()
            await house.book()
    finally:
        await other.dispose()
    sent = house.transactions()
    assert len(sent) == len({row.nonce for row in sent}) == 10
    assert {row.state for row in sent} == {"done"}
    assert {house.withdrawal(each.id).state for each in asked} == {"paid"}
    assert sorted(await house.payments(wallet.address)) == [1_000_000 + n for n in range(10)]
    await house.check_books()


async def test_who_loses_the_lock_with_its_connection_stops_at_once(house: House) -> None:
    async with house.database.locked("a lock") as first:
        assert first is not None
        async with house.database.locked("a lock") as second:
            assert second is None
    with pytest.raises(DatabaseUnavailable):  # noqa: PT012 -- what it loses and when it notices
        async with house.database.locked("a lock") as held:
            assert held is not None
            with psycopg.connect(house.url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks"
                    " WHERE locktype = 'advisory' AND database = (SELECT oid FROM"
                    " pg_database WHERE datname = current_database())"
                )
            async with house.database.locked("a lock") as taken:
                assert taken is not None
            await held.exec_driver_sql("SELECT 1")
    async with house.database.locked("a lock") as again:
        assert again is not None


async def test_a_round_that_fails_gives_the_lock_back(house: House) -> None:
    with pytest.raises(RuntimeError, match="a bug"):  # noqa: PT012 -- the block is the claim
        async with house.database.locked("a lock") as held:
            assert held is not None
            raise RuntimeError("a bug")
    async with house.database.locked("a lock") as again:
        assert again is not None


async def test_what_waits_for_another_key_is_fatal_and_nothing_is_sent(house: House) -> None:
    wallet = await house.new_wallet()
    await house.ask(wallet, 1_000_000)
    await house.withdrawals().run_once()
    key = KeystoreKey(TEST_KEYS[GUARDIAN])
    terms = SenderTerms(chain_id=CHAIN_ID, purposes=OPERATOR_PURPOSES, rules=PATIENT)
    with pytest.raises(WrongSender):
        await Sender(house.database, house.rpc, key, terms).run_once()
    assert house.transactions()[0].state == "queued"
