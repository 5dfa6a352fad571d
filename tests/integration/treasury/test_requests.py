"""Asking for a withdrawal: what is refused, what is answered again, and what a race may take."""

import asyncio
import secrets
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from app.db.engine import open_database
from app.treasury.chain_view import ChainView
from app.treasury.errors import (
    ChainNotConfigured,
    FeeUnknown,
    WithdrawalDeadline,
    WithdrawalFeeTooLow,
    WithdrawalNonceUsed,
    WithdrawalNotFound,
    WithdrawalsHalted,
    WithdrawalToken,
    WithdrawalTooSmall,
)
from app.treasury.fee import WITHDRAW_GAS
from app.wallets.errors import ExitOpen, WalletOwes, WrongSigner
from ledger.errors import BadAmount, BadSignature, InsufficientFunds, MalformedTypedData
from ledger.money import Nano
from ledger.signing import SigningKey
from tests.integration.treasury.house import FUNDS, House, house

__all__ = ["house"]

TOKEN_NANO = 10**9


async def test_the_same_signed_message_gets_the_same_withdrawal_whatever_has_changed(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    message = house.message(wallet, 1_000_000)
    signature = house.signed(wallet, message)
    first = await house.service().request(message.message(), signature)
    dear = house.service(gas_token_price=3_000 * TOKEN_NANO, minimum=10**12)
    again = await dear.request(message.message(), signature)
    assert (again.id, again.fee, again.amount) == (first.id, first.fee, first.amount)
    assert house.available(wallet) == (FUNDS - 1_000_000) * 1_000
    await house.settle(4)
    paid = await house.service().request(message.message(), signature)
    assert (paid.id, paid.state) == (first.id, "paid")
    assert await house.payments(wallet.address) == [1_000_000]


async def test_a_tampered_or_foreign_message_is_refused_and_takes_nothing(house: House) -> None:
    wallet, thief = await house.new_wallet(), SigningKey(secrets.token_bytes(32))
    message = house.message(wallet, 1_000_000)
    signature = house.signed(wallet, message)
    service = house.service()
    for changed in (
        {"amount": 2_000_000},
        {"max_fee": 5},
        {"nonce": bytes(32)},
        {"deadline": message.deadline + 1},
        {"payer": thief.address},
    ):
        with pytest.raises(WrongSigner):
            await service.request(replace(message, **changed).message(), signature)
    with pytest.raises(WrongSigner):
        await service.request(message.message(), house.signed(thief, message))
    for bad in ("0x", signature[:-2] + "00", signature[:-2]):
        with pytest.raises(BadSignature):
            await service.request(message.message(), bad)
    for given in ({**message.message(), "recipient": thief.address}, {"payer": wallet.address}):
        with pytest.raises(MalformedTypedData):
            await service.request(given, signature)
    assert house.available(wallet) == FUNDS * 1_000
    assert house.rows("SELECT FROM offpeak.withdrawal") == []


async def test_each_refusal_has_its_own_name_and_takes_nothing(house: House) -> None:
    wallet = await house.new_wallet()
    now = datetime.now(UTC)
    soon = int((now + timedelta(minutes=5)).timestamp())
    late = int((now + timedelta(days=8)).timestamp())
    with pytest.raises(WithdrawalDeadline):
        await house.ask(wallet, 1_000_000, deadline=soon)
    with pytest.raises(WithdrawalDeadline):
        await house.ask(wallet, 1_000_000, deadline=late)
    with pytest.raises(WithdrawalDeadline):
        await house.ask(wallet, 1_000_000, deadline=2**64 - 1)
    with pytest.raises(WithdrawalToken):
        await house.ask(wallet, 1_000_000, token=wallet.address)
    with pytest.raises(WithdrawalTooSmall):
        await house.ask(wallet, 0)
    with pytest.raises(BadAmount):
        await house.ask(wallet, 2**255)
    with pytest.raises(InsufficientFunds):
        await house.ask(wallet, FUNDS + 1)
    with pytest.raises(InsufficientFunds):
        await house.ask(SigningKey(secrets.token_bytes(32)), 1_000_000)
    nonce = secrets.token_bytes(32)
    await house.ask(wallet, 1_000_000, nonce=nonce)
    with pytest.raises(WithdrawalNonceUsed):
        await house.ask(wallet, 1_000_001, nonce=nonce)
    with psycopg.connect(house.url, autocommit=True) as connection:
        for column, value, refusal in (
            ("exiting", "true", ExitOpen),
            ("owed", "1", WalletOwes),
        ):
            undo = "false" if value == "true" else "0"
            change = f"UPDATE offpeak.wallet_balance SET {column} = "
            connection.execute((change + value).encode())
            with pytest.raises(refusal):
                await house.ask(wallet, 1_000_000)
            connection.execute((change + undo).encode())
        connection.execute("SELECT offpeak.halt_ledger('a test')")
        with pytest.raises(WithdrawalsHalted):
            await house.ask(wallet, 1_000_000)
    assert house.available(wallet) == (FUNDS - 1_000_000) * 1_000


async def test_a_fee_above_the_signed_one_is_refused_with_the_fee(house: House) -> None:
    wallet = await house.new_wallet()
    service = house.service(gas_token_price=3_000 * TOKEN_NANO)
    fee = await service.view.fee()
    assert fee > 0
    low = house.message(wallet, 5_000_000, max_fee=fee - 1)
    with pytest.raises(WithdrawalFeeTooLow) as refused:
        await service.request(low.message(), house.signed(wallet, low))
    assert refused.value.fee_base_units == str(fee)
    enough = house.message(wallet, 5_000_000, max_fee=fee + 1)
    stored = await service.request(enough.message(), house.signed(wallet, enough))
    assert stored.fee == fee * 1_000
    not_above = house.message(wallet, fee, max_fee=fee)
    with pytest.raises(WithdrawalTooSmall):
        await service.request(not_above.message(), house.signed(wallet, not_above))
    await house.settle(4)
    assert await house.tokens(wallet.address) == 5_000_000 - fee
    assert await house.treasury.earned("latest") >= fee
    await house.check_books()


async def test_a_withdrawal_takes_about_the_gas_that_its_fee_is_reckoned_with(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    await house.ask(wallet, 1_000_000)
    await house.settle(4)
    [sent] = house.transactions()
    receipt = await house.rpc.receipt(bytes(sent.mined_hash))
    assert receipt is not None
    assert WITHDRAW_GAS * 0.6 <= receipt.gas_used <= WITHDRAW_GAS


async def test_without_a_chain_or_a_node_nothing_is_taken(house: House) -> None:
    wallet = await house.new_wallet()
    message = house.message(wallet, 1_000_000, max_fee=10**9)
    signed = house.signed(wallet, message)
    none = replace(house.service(), view=ChainView(None, Nano(0), lambda: 0.0))
    with pytest.raises(ChainNotConfigured):
        await none.request(message.message(), signed)
    async with house.dead_rpc() as dead:
        silent = replace(house.service(), view=ChainView(dead, Nano(TOKEN_NANO), lambda: 0.0))
        with pytest.raises(FeeUnknown):
            await silent.request(message.message(), signed)
    assert house.available(wallet) == FUNDS * 1_000


async def test_thirty_two_requests_at_once_over_two_gateways_take_what_is_there_and_no_more(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    other = open_database(house.url, pool_size=8)
    try:
        services = [house.service(), replace(house.service(), database=other)]
        messages = [house.message(wallet, 20_000_000) for _ in range(32)]
        answers = await asyncio.gather(
            *(
                services[n % 2].request(message.message(), house.signed(wallet, message))
                for n, message in enumerate(messages)
            ),
            return_exceptions=True,
        )
    finally:
        await other.dispose()
    kinds = Counter(type(answer).__name__ for answer in answers)
    assert kinds == {"StoredWithdrawal": 2, "InsufficientFunds": 30}
    assert house.available(wallet) == 10_000_000_000
    await house.settle(4)
    assert await house.payments(wallet.address) == [20_000_000, 20_000_000]
    assert await house.tokens(wallet.address) == 40_000_000
    await house.check_books()


async def test_one_message_sent_many_times_at_once_is_one_withdrawal(house: House) -> None:
    wallet = await house.new_wallet()
    message = house.message(wallet, 20_000_000)
    signed = house.signed(wallet, message)
    service = house.service()
    answers = await asyncio.gather(*(service.request(message.message(), signed) for _ in range(16)))
    assert len({answer.id for answer in answers}) == 1
    assert house.available(wallet) == 30_000_000_000


async def test_a_wallet_sees_its_own_withdrawals_page_by_page_and_nobody_elses(
    house: House,
) -> None:
    wallet, other = await house.new_wallet(), await house.new_wallet()
    asked = [await house.ask(wallet, 1_000_000 + n) for n in range(5)]
    service = house.service()
    first = await service.page(wallet.address, before=None, limit=3)
    rest = await service.page(wallet.address, before=first[-1].id, limit=3)
    assert [each.id for each in [*first, *rest]] == [each.id for each in reversed(asked)]
    assert await service.page(other.address, before=None, limit=3) == []
    with pytest.raises(WithdrawalNotFound):
        await service.one(asked[0].id, payer=other.address)
