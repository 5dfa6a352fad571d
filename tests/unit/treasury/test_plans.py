"""Fees, commitments and payouts: what is sent, from what is known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.treasury.commitment_plan import (
    BATCH_LIMIT,
    REFUND_LIMIT,
    WalletSpend,
    plan_commitments,
    refund_id,
)
from app.treasury.fee import base_units_down, base_units_up, nano, withdrawal_fee
from app.treasury.payout_plan import (
    BATCH_LIMIT as PAYOUTS_LIMIT,
)
from app.treasury.payout_plan import (
    PendingPayout,
    SupplierStatement,
    payout_batch,
)
from ledger.encoding import Address
from ledger.money import Nano

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TREASURY = Address("0x" + "22" * 20)
amounts = st.integers(0, 10**15)


@given(st.integers(0, 10**13), st.integers(1, 10**14), st.integers(1, 10**6))
def test_a_fee_covers_its_gas_and_is_at_most_one_base_unit_above_it(
    gas_price: int, price: int, gas: int
) -> None:
    exact = Fraction(gas * gas_price, 10**18) * Fraction(price, 10**9) * 10**6
    fee = withdrawal_fee(gas_price=gas_price, gas_token_price=Nano(price), gas=gas)
    assert exact <= fee < exact + 1


def test_a_price_of_zero_gives_gas_away() -> None:
    assert withdrawal_fee(gas_price=10**12, gas_token_price=Nano(0)) == 0


def test_a_fee_by_hand() -> None:
    # 150,000 gas at 2 gwei is 0.0003 coins; at 3,000 tokens a coin 0.9 tokens
    assert withdrawal_fee(gas_price=2 * 10**9, gas_token_price=Nano(3_000 * 10**9)) == 900_000


@given(amounts)
def test_base_units_round_the_way_they_say(amount: int) -> None:
    assert nano(base_units_down(Nano(amount))) <= amount <= nano(base_units_up(Nano(amount)))
    assert base_units_up(Nano(amount)) - base_units_down(Nano(amount)) == (amount % 1_000 != 0)


def wallet(
    number: int, *, net: int, spent: int = 0, refunded: int = 0, room: int = 1
) -> WalletSpend:
    return WalletSpend(
        account_id=UUID(int=number),
        payer=Address(f"0x{number:040x}"),
        net=Nano(net),
        spent=spent,
        refunded=refunded,
        room=room,
    )


wallets = st.lists(
    st.builds(
        wallet,
        st.integers(1, 400),
        net=amounts,
        spent=st.integers(0, 10**12),
        refunded=st.integers(0, 10**12),
        room=st.integers(0, 5),
    ),
    max_size=150,
    unique_by=lambda each: each.payer,
)


@given(wallets)
def test_a_plan_brings_the_chain_to_the_ledger_and_never_beyond(given_: list[WalletSpend]) -> None:
    plan = plan_commitments(given_, treasury=TREASURY)
    by_payer = {each.payer: each for each in given_}
    assert len(plan.payers) == len(set(plan.payers)) == len(plan.spent) <= BATCH_LIMIT
    for payer, cumulative in zip(plan.payers, plan.spent, strict=True):
        each = by_payer[payer]
        assert cumulative > each.spent
        assert cumulative - each.refunded == base_units_up(each.net)
        assert each.room > 0
    assert len(plan.refunds) <= REFUND_LIMIT
    for refund in plan.refunds:
        each = by_payer[refund.payer]
        assert refund.amount > 0
        assert each.spent - each.refunded - refund.amount == base_units_up(each.net)
        assert refund.payer not in plan.payers


def test_who_leaves_is_told_of_first_however_little_it_spent() -> None:
    many = [wallet(number, net=1_000_000) for number in range(2, BATCH_LIMIT + 50)]
    leaving = replace(wallet(1, net=1), is_leaving=True)
    plan = plan_commitments([*many, leaving], treasury=TREASURY)
    assert plan.payers[0] == leaving.payer
    assert len(plan.payers) == BATCH_LIMIT


@given(wallets)
def test_a_chain_that_was_told_needs_no_plan(given_: list[WalletSpend]) -> None:
    told = [replace(each, spent=each.refunded + base_units_up(each.net)) for each in given_]
    plan = plan_commitments(told, treasury=TREASURY)
    assert not plan.payers
    assert not plan.refunds


def test_two_refunds_made_of_the_same_sums_are_one_on_chain() -> None:
    first = wallet(1, net=0, spent=5, refunded=2)
    again = replace(first, net=Nano(1_000))
    later = replace(first, refunded=5)
    assert refund_id(first, treasury=TREASURY) == refund_id(again, treasury=TREASURY)
    assert refund_id(first, treasury=TREASURY) != refund_id(later, treasury=TREASURY)
    assert refund_id(first, treasury=TREASURY) != refund_id(first, treasury=first.payer)


@given(amounts, amounts, amounts, st.booleans())
def test_a_statement_adds_up_and_never_pays_more_than_is_owed(
    owed: int,
    paid: int,
    pending: int,
    has_address: bool,  # noqa: FBT001 -- hypothesis
) -> None:
    statement = SupplierStatement(
        supplier_id=UUID(int=1),
        name="acme",
        address=TREASURY if has_address else None,
        accrued=Nano(owed + paid + pending),
        paid=Nano(paid),
        pending=Nano(pending),
    )
    assert statement.owed == owed
    assert nano(statement.to_be_paid) + statement.rest == owed
    assert statement.rest >= 0
    if has_address:
        assert statement.rest < 1_000
    else:
        assert statement.to_be_paid == 0


def payout(
    number: int, amount: int, *, failures: int = 0, age: timedelta | None = None
) -> PendingPayout:
    return PendingPayout(
        id=UUID(int=number),
        recipient=TREASURY,
        amount=amount,
        failures=failures,
        failed_at=None if age is None else NOW - age,
    )


@given(st.lists(st.integers(1, 100), max_size=120), st.integers(0, 2_000))
def test_a_payout_batch_stays_within_funds_and_size_and_in_order(
    sizes: list[int], funds: int
) -> None:
    pending = [payout(number, amount) for number, amount in enumerate(sizes)]
    chosen = payout_batch(pending, funds=funds, now=NOW)
    assert sum(each.amount for each in chosen) <= funds
    assert len(chosen) <= PAYOUTS_LIMIT
    assert [each.id for each in chosen] == sorted(each.id for each in chosen)
    left = funds - sum(each.amount for each in chosen)
    if len(chosen) < PAYOUTS_LIMIT:
        assert all(each.amount > left for each in pending if each not in chosen)


def test_a_refused_payout_waits_an_hour_doubled_with_each_refusal() -> None:
    hour = timedelta(hours=1)
    assert payout(1, 1).due(NOW)
    assert not payout(1, 1, failures=1, age=hour / 2).due(NOW)
    assert payout(1, 1, failures=1, age=hour).due(NOW)
    assert not payout(1, 1, failures=3, age=3 * hour).due(NOW)
    assert payout(1, 1, failures=3, age=4 * hour).due(NOW)
    assert payout(1, 1, failures=90, age=24 * hour).due(NOW)


@given(st.integers(1, 10**12), st.lists(st.integers(0, 10**9), max_size=20), st.data())
def test_what_the_chain_leaves_a_wallet_is_its_balance_rounded_down_to_base_units(
    deposited: int, charges: list[int], data: st.DataObject
) -> None:
    spent = refunded = net = 0
    for charge in charges:
        corrected = data.draw(st.integers(0, charge))
        for change in (charge, -corrected):
            if not 0 <= net + change <= nano(deposited):
                continue
            net += change
            held = deposited + refunded - spent
            told = wallet(1, net=net, spent=spent, refunded=refunded, room=held)
            plan = plan_commitments([told], treasury=TREASURY)
            spent = next(iter(plan.spent), spent)
            refunded += sum(each.amount for each in plan.refunds)
            balance = nano(deposited) - net
            assert deposited + refunded - spent == base_units_down(Nano(balance))
