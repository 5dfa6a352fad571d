"""A wallet's buckets: which depth a deposit waits for, and what is said to be done about each."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.wallets.balance import (
    EXIT_WINDOW,
    Balance,
    Heads,
    OpenExit,
    PendingDeposit,
    PendingWithdrawal,
    Unaccounted,
    depths,
)
from ledger.money import Nano

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HASH = b"\x11" * 32
AMOUNTS = st.lists(st.integers(0, 10**6).map(Nano), max_size=8)


@given(amounts=AMOUNTS, not_final=st.integers(0, 10**6), limit=st.integers(0, 10**6))
def test_what_counts_before_it_is_final_never_exceeds_the_limit(
    amounts: list[Nano], not_final: int, limit: int
) -> None:
    found = depths(amounts, not_final=Nano(not_final), safe_limit=Nano(limit))
    early = sum(amount for amount, depth in zip(amounts, found, strict=True) if depth == "safe")
    assert early == 0 or early + not_final <= limit


def test_a_small_deposit_after_a_large_one_still_counts_when_it_is_safe() -> None:
    found = depths([Nano(4), Nano(100), Nano(6), Nano(1)], not_final=Nano(0), safe_limit=Nano(10))
    assert found == ["safe", "finalized", "safe", "finalized"]


def test_blocks_left_are_counted_to_the_depth_that_is_waited_for() -> None:
    heads = Heads(latest=20, safe=17, finalized=12)
    assert [heads.left(18, "safe"), heads.left(18, "finalized"), heads.left(3, "safe")] == [1, 6, 0]


def deposit(left: int | None) -> PendingDeposit:
    return PendingDeposit(
        amount=Nano(5), transaction=HASH, block=18, waits_for="safe", blocks_left=left
    )


def test_a_deposit_says_how_long_it_waits() -> None:
    assert deposit(1).next_step() == "wait 1 block, until block 18 is safe"
    assert deposit(7).next_step() == "wait 7 blocks, until block 18 is safe"
    assert deposit(0).next_step() == "wait a moment: it is being credited"
    assert deposit(None).next_step() == "wait until block 18 is safe"


def withdrawal(**given: object) -> PendingWithdrawal:
    known = {"transaction": None, "block": None, "blocks_left": None, "trouble": None, **given}
    return PendingWithdrawal(
        id=UUID(int=1),
        amount=Nano(9),
        fee=Nano(1),
        deadline=NOW,
        **known,  # type: ignore[arg-type]
    )


def test_a_withdrawal_says_where_it_is() -> None:
    assert withdrawal().next_step() == (
        "wait until it is sent; if it is not by 2026-01-01 00:00:00 UTC, the money comes back"
    )
    assert "(no gas)" in withdrawal(trouble="no gas").next_step()
    assert withdrawal(transaction=HASH).next_step() == "wait until its transaction is mined"
    mined = withdrawal(transaction=HASH, block=4, blocks_left=2)
    assert mined.next_step() == "wait until block 4 is final, 2 blocks more"


def test_an_exit_says_when_it_can_be_finalized() -> None:
    leaving = OpenExit(wanted=Nano(5), set_aside=Nano(4), ready_at=NOW)
    assert leaving.next_step(NOW - timedelta(seconds=1)).startswith(
        "`offpeak exit finalize` from 2026-01-01 00:00:00 UTC on"
    )
    assert leaving.next_step(NOW).startswith(
        "`offpeak exit finalize` until 2026-01-04 00:00:00 UTC"
    )
    assert "lapsed" in leaving.next_step(NOW + EXIT_WINDOW)


def test_each_bucket_that_holds_something_has_its_next_step_and_no_other() -> None:
    transfer = Unaccounted(
        event=UUID(int=7),
        amount=Nano(1),
        transaction=HASH,
        block=3,
        is_final=True,
        is_claimed=False,
    )
    balance = Balance(
        as_of=NOW,
        available=Nano(1),
        held=Nano(1),
        pending=Nano(5),
        deposits=(deposit(1),),
        withdrawing=Nano(9),
        withdrawals=(withdrawal(),),
        unaccounted=Nano(1),
        transfers=(transfer,),
        owed=Nano(3),
    )
    steps = balance.next_steps()
    assert steps.keys() == {
        "available",
        "held",
        "pending",
        "withdrawing",
        "unaccounted",
        "owed",
    }
    assert str(transfer.event) in steps["unaccounted"]
    assert "0.000000003" in steps["owed"]
    assert Balance(as_of=NOW).next_steps() == {}
