"""What the sender does next, for every state of a transaction and everything a node may show."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.chain.blocks import BlockId
from app.chain.fees import Fees
from app.treasury.transaction import (
    Attempt,
    Broadcast,
    Finish,
    Inclusion,
    Mine,
    NonceTaken,
    Purpose,
    Replace,
    Rules,
    Sight,
    StoredTransaction,
    TransactionState,
    Unmine,
    Wait,
    gas_shortfall,
    missing_nonces,
    next_nonce,
    next_step,
    promised_gas,
    rest_after,
)
from ledger.encoding import Address

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RULES = Rules(
    replace_after=timedelta(seconds=60), rebroadcast_after=timedelta(seconds=10), fee_cap=10**12
)
SENDER = Address("0x" + "11" * 20)
GWEI = 10**9

wei = st.integers(min_value=0, max_value=10**13)
fees = st.builds(lambda a, b: Fees(max(a, b), min(a, b)), wei, wei)
blocks = st.builds(BlockId, st.integers(0, 50), st.binary(min_size=32, max_size=32))


def attempt(number: int = 0, *, age: int = 0, taken: bool = True) -> Attempt:
    at = NOW - timedelta(seconds=age)
    return Attempt(
        hash=bytes([number]) * 32,
        raw=b"raw%d" % number,
        fees=Fees((2 + number) * GWEI, GWEI),
        created_at=at,
        broadcast_at=at if taken else None,
    )


def transaction(
    *attempts: Attempt, nonce: int = 7, mined: BlockId | None = None
) -> StoredTransaction:
    return StoredTransaction(
        id=UUID(int=1),
        sender=SENDER,
        purpose=Purpose.WITHDRAWAL,
        subject=UUID(int=2),
        to=SENDER,
        data=b"",
        state=TransactionState.MINED if mined else TransactionState.SIGNED,
        nonce=nonce,
        gas=100_000,
        attempts=attempts,
        mined=mined,
        mined_hash=attempts[0].hash if mined else None,
        tries=0,
        last_error=None,
        created_at=NOW,
    )


NOTHING = Sight(
    inclusion=None,
    replaced_block=False,
    nonce_latest=7,
    nonce_final=7,
    final_number=10,
    fees=Fees(3 * GWEI, GWEI),
)


@st.composite
def transactions(draw: st.DrawFn) -> StoredTransaction:
    count = draw(st.integers(1, 4))
    ages = sorted(draw(st.lists(st.integers(0, 200), min_size=count, max_size=count)), reverse=True)
    made = [attempt(n, age=ages[n], taken=draw(st.booleans())) for n in range(count)]
    return transaction(*made, mined=draw(st.none() | blocks))


@st.composite
def sights(draw: st.DrawFn) -> Sight:
    inclusion = None
    if draw(st.booleans()):
        inclusion = Inclusion(
            bytes([draw(st.integers(0, 3))]) * 32, draw(blocks), draw(st.booleans())
        )
    latest = draw(st.integers(0, 20))
    return Sight(
        inclusion=inclusion,
        replaced_block=draw(st.booleans()),
        nonce_latest=latest,
        nonce_final=draw(st.integers(0, latest)),
        final_number=draw(st.integers(0, 60)),
        fees=draw(fees),
    )


@given(transactions(), sights())
def test_it_ends_only_by_a_receipt_in_a_final_block_that_was_noted_before(
    tx: StoredTransaction, sight: Sight
) -> None:
    step = next_step(tx, sight, rules=RULES, now=NOW)
    if isinstance(step, Finish):
        assert sight.inclusion is not None
        assert tx.state is TransactionState.MINED
        assert tx.mined == sight.inclusion.block
        assert sight.inclusion.block.number <= sight.final_number
        assert step.succeeded == sight.inclusion.succeeded


@given(transactions(), sights())
def test_without_a_receipt_nothing_is_decided_but_what_is_proved(
    tx: StoredTransaction, sight: Sight
) -> None:
    step = next_step(tx, replace(sight, inclusion=None), rules=RULES, now=NOW)
    assert not isinstance(step, Mine | Finish)
    if isinstance(step, Unmine):
        assert sight.replaced_block
    if isinstance(step, NonceTaken):
        assert sight.nonce_final > (tx.nonce or 0)


@given(transactions(), sights())
def test_a_replacement_is_made_only_while_its_nonce_is_next_and_it_has_waited(
    tx: StoredTransaction, sight: Sight
) -> None:
    step = next_step(tx, sight, rules=RULES, now=NOW)
    if isinstance(step, Replace):
        last = tx.attempts[-1]
        assert sight.nonce_latest == tx.nonce
        assert NOW - last.created_at >= RULES.replace_after
        assert step.fees.max_fee >= last.fees.bumped().max_fee
        assert step.fees.priority_fee >= last.fees.bumped().priority_fee


def test_a_signed_one_that_no_node_took_is_sent_first() -> None:
    fresh = attempt(taken=False, age=1_000)
    assert next_step(transaction(fresh), NOTHING, rules=RULES, now=NOW) == Broadcast(fresh)


def test_one_without_a_receipt_is_sent_again_as_it_is() -> None:
    old = attempt(age=20)
    assert next_step(transaction(old), NOTHING, rules=RULES, now=NOW) == Broadcast(old)


def test_one_behind_another_is_sent_again_and_never_replaced() -> None:
    old = attempt(age=1_000)
    sight = replace(NOTHING, nonce_latest=6)
    assert next_step(transaction(old), sight, rules=RULES, now=NOW) == Broadcast(old)


def test_one_at_the_cap_is_sent_again() -> None:
    old = attempt(age=1_000)
    rules = replace(RULES, fee_cap=old.fees.max_fee)
    assert next_step(transaction(old), NOTHING, rules=rules, now=NOW) == Broadcast(old)


def test_a_used_nonce_without_a_receipt_is_a_wait_until_it_is_final() -> None:
    tx = transaction(attempt(age=1_000))
    used = replace(NOTHING, nonce_latest=8)
    assert next_step(tx, used, rules=RULES, now=NOW) == Wait()
    assert next_step(tx, replace(used, nonce_final=8), rules=RULES, now=NOW) == NonceTaken()


def test_a_receipt_is_noted_then_ends_it_when_its_block_is_final() -> None:
    first, second = attempt(0), attempt(1)
    place = BlockId(11, b"b" * 32)
    seen = replace(NOTHING, inclusion=Inclusion(first.hash, place, True), nonce_latest=8)
    tx = transaction(first, second)
    assert next_step(tx, seen, rules=RULES, now=NOW) == Mine(seen.inclusion)  # type: ignore[arg-type]
    mined = transaction(first, second, mined=place)
    assert next_step(mined, seen, rules=RULES, now=NOW) == Wait()
    final = replace(seen, final_number=11)
    assert next_step(mined, final, rules=RULES, now=NOW) == Finish(succeeded=True)


def test_a_mined_one_in_another_block_or_attempt_goes_back_first() -> None:
    first, second = attempt(0), attempt(1)
    mined = transaction(first, second, mined=BlockId(9, b"a" * 32))
    for inclusion in (
        Inclusion(first.hash, BlockId(9, b"b" * 32), True),
        Inclusion(second.hash, BlockId(9, b"a" * 32), True),
    ):
        sight = replace(NOTHING, inclusion=inclusion)
        assert next_step(mined, sight, rules=RULES, now=NOW) == Unmine()


def test_a_mined_one_whose_receipt_is_missing_waits_until_its_block_is_proved_gone() -> None:
    mined = transaction(attempt(0), mined=BlockId(9, b"a" * 32))
    assert next_step(mined, NOTHING, rules=RULES, now=NOW) == Wait()
    gone = replace(NOTHING, replaced_block=True)
    assert next_step(mined, gone, rules=RULES, now=NOW) == Unmine()


@given(st.none() | st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_new_nonce_is_neither_owned_nor_used(stored: int | None, on_chain: int) -> None:
    nonce = next_nonce(stored, on_chain)
    assert nonce >= on_chain
    assert stored is None or nonce > stored


@given(st.sets(st.integers(0, 30)), st.integers(0, 30))
def test_a_gap_is_what_nobody_owns_before_our_first_waiting_one(
    owned: set[int], on_chain: int
) -> None:
    gap = missing_nonces(sorted(owned), on_chain)
    assert not owned & set(gap)
    assert all(nonce >= on_chain for nonce in gap)
    waiting = {nonce for nonce in owned if nonce >= on_chain}
    assert len(gap) == (min(waiting) - on_chain if waiting else 0)


@given(st.integers(0, 10_000))
def test_a_postponed_one_is_tried_again_within_the_longest_rest(tries: int) -> None:
    wait = RULES.retry_after(tries)
    assert RULES.retry_first <= wait <= RULES.retry_most
    assert wait <= RULES.retry_after(tries + 1)


def test_gas_is_enough_only_beside_what_waiting_ones_may_cost() -> None:
    waiting = transaction(attempt(0), attempt(3), nonce=7)
    promised = promised_gas([waiting, transaction(attempt(0), nonce=6)], 7)
    assert promised == 100_000 * 5 * GWEI
    offer = Fees(2 * GWEI, GWEI)
    need = promised + 50_000 * offer.max_fee
    assert gas_shortfall(balance=need, promised=promised, gas=50_000, fees=offer) == 0
    assert gas_shortfall(balance=need - 1, promised=promised, gas=50_000, fees=offer) == 1


@given(st.integers(0, 10_000))
def test_what_has_failed_rests_twice_as_long_each_time_up_to_a_limit(times: int) -> None:
    first, most = timedelta(seconds=10), timedelta(minutes=10)
    rest = rest_after(times, first=first, most=most)
    assert first <= rest <= most
    assert rest_after(times + 1, first=first, most=most) == min(2 * rest, most)
