"""What may be asked for, when a transaction is begun, and what its wallet is told."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.treasury.errors import TreasuryError
from app.treasury.fee import nano
from app.treasury.transaction import TransactionState
from app.treasury.withdrawal import (
    LAST_START,
    LEAST_AHEAD,
    MOST_AHEAD,
    SKEW,
    Relay,
    StoredWithdrawal,
    ToRelay,
    WithdrawalState,
    WithdrawalTerms,
    check_withdrawal,
    next_action,
)
from ledger.authorization import Withdrawal
from ledger.encoding import Address
from ledger.errors import BadAmount
from ledger.money import MAX_NANO, Nano

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TOKEN = Address("0x" + "33" * 20)
PAYER = Address("0x" + "44" * 20)
words = st.integers(0, 2**256 - 1) | st.integers(0, 10**7)
times = st.integers(0, 2**64 - 1) | st.integers(-(10**6), 10**6).map(
    lambda each: int(NOW.timestamp()) + each
)


@given(words, words, times, st.integers(0, 10**7), st.integers(0, 10**10))
def test_what_passes_is_in_time_above_the_minimum_and_the_fee_and_within_the_signed_fee(
    amount: int, max_fee: int, deadline: int, fee: int, minimum: int
) -> None:
    message = Withdrawal(PAYER, TOKEN, amount, max_fee, bytes(32), deadline)
    terms = WithdrawalTerms(token=TOKEN, minimum=Nano(minimum))
    try:
        check_withdrawal(message, fee=fee, terms=terms, now=NOW)
    except (TreasuryError, BadAmount):
        return
    assert fee <= max_fee
    assert fee < amount
    assert minimum <= nano(amount) <= MAX_NANO
    ahead = timedelta(seconds=deadline - NOW.timestamp())
    assert LEAST_AHEAD - SKEW <= ahead <= MOST_AHEAD + SKEW


def stored(state: WithdrawalState, *relays: Relay) -> StoredWithdrawal:
    return StoredWithdrawal(
        id=UUID(int=1),
        payer=PAYER,
        digest=bytes(32),
        amount=Nano(1_000),
        fee=Nano(0),
        deadline=NOW + timedelta(hours=1),
        message=b"{}",
        signature=b"",
        state=state,
        requested_at=NOW,
        ended_at=None,
        reason=None,
        relays=relays,
    )


def relay(state: TransactionState, *, error: str | None = None) -> Relay:
    block = 12 if state is TransactionState.MINED else None
    return Relay(state=state, hash=None, block_number=block, last_error=error)


@given(st.integers(0, 40), st.integers(0, 7_200))
def test_a_transaction_is_begun_in_time_and_not_right_after_a_revert(
    reverted: int, seconds: int
) -> None:
    waiting = ToRelay(
        withdrawal=stored(WithdrawalState.PENDING),
        reverted=reverted,
        reverted_at=NOW if reverted else None,
    )
    now = NOW + timedelta(seconds=seconds)
    if waiting.due(now):
        assert now <= waiting.withdrawal.deadline - LAST_START
        assert not reverted or seconds >= 10
    elif not reverted:
        assert now > waiting.withdrawal.deadline - LAST_START


@pytest.mark.parametrize(
    ("state", "relays", "said"),
    [
        (WithdrawalState.PAID, [], "none"),
        (WithdrawalState.FAILED, [], "sign a new withdrawal"),
        (WithdrawalState.PENDING, [], "until it is sent"),
        (WithdrawalState.PENDING, [relay(TransactionState.QUEUED)], "until it is sent"),
        (
            WithdrawalState.PENDING,
            [relay(TransactionState.QUEUED, error="would-revert: EnforcedPause")],
            "cannot be paid now (would-revert: EnforcedPause)",
        ),
        (WithdrawalState.PENDING, [relay(TransactionState.SIGNED)], "is mined"),
        (WithdrawalState.PENDING, [relay(TransactionState.MINED)], "2 more to go"),
        (WithdrawalState.PENDING, [relay(TransactionState.DONE)], "event is booked"),
        (WithdrawalState.PENDING, [relay(TransactionState.REVERTED)], "until it is sent"),
    ],
)
def test_a_wallet_is_told_what_happens_next(
    state: WithdrawalState, relays: list[Relay], said: str
) -> None:
    assert said in next_action(stored(state, *relays), final_number=10)


def test_how_far_a_block_is_from_final_is_left_out_where_nobody_knows() -> None:
    mined = stored(WithdrawalState.PENDING, relay(TransactionState.MINED))
    assert next_action(mined, final_number=None) == "wait until block 12 is final"
