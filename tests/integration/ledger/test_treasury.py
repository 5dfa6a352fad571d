"""What the chain says, in the books: deposits, reorganizations, exits, withdrawals, payouts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from ledger.encoding import uuid_bytes32
from tests.integration.books import ASSET, Order, Seller, wallet
from tests.integration.treasury_books import BASE, Money, Seen, TreasuryBooks

BUYER, OTHER = wallet(1), wallet(2)
LATER = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
PAYEE = wallet(77)


@pytest.fixture
def books(fresh_database_url: str) -> Iterator[TreasuryBooks]:
    with TreasuryBooks(fresh_database_url) as books:
        yield books
        assert books.broken_rules() == []


@pytest.fixture
def seller(books: TreasuryBooks) -> Seller:
    return books.seller(8, ask=100)


def accept(books: TreasuryBooks, seller: Seller, amount: int) -> str:
    order = Order(payer=BUYER, amount=amount, candidates=(seller.deployment_id,))
    return str(books.accept([order])[0].code)


def spend(books: TreasuryBooks, seller: Seller, amount: int) -> None:
    order = Order(
        payer=BUYER, amount=amount, candidates=(seller.deployment_id,), per_request=amount
    )
    assert books.settle(books.accept([order]), amount) == ["ok"]


# --- deposits ---------------------------------------------------------------------------------


def test_a_deposit_is_credited_once_however_often_it_is_seen_and_booked(
    books: TreasuryBooks,
) -> None:
    event = Seen("deposited", BUYER, 5, books.next_block())
    first = books.see(event)
    assert books.see(event) == first
    assert [books.book(first), books.book(first)] == ["ok", "duplicate"]
    assert books.see(event) == first
    assert books.book(first) == "duplicate"
    assert books.money(BUYER) == Money(5 * BASE, 0, 0, False, 0, 0)
    assert books.net("treasury") == -5 * BASE


def test_parallel_bookings_of_one_deposit_credit_it_once(
    books: TreasuryBooks, fresh_database_url: str
) -> None:
    event = books.see(Seen("deposited", BUYER, 5, books.next_block()))

    def book(_: int) -> str:
        with TreasuryBooks(fresh_database_url) as mine:
            return mine.book(event)

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(book, range(8)))
    assert codes == ["duplicate"] * 7 + ["ok"]
    assert books.money(BUYER).available == 5 * BASE


def test_a_reorganized_deposit_takes_back_what_is_there_and_the_rest_is_owed(
    books: TreasuryBooks, seller: Seller
) -> None:
    event = books.happened("deposited", BUYER, 5)
    spend(books, seller, 2 * BASE)
    assert books.orphan(event) == "ok"
    assert books.money(BUYER) == Money(0, 0, 2 * BASE, False, 0, 0)
    assert books.orphan(event) == "duplicate"


def test_a_wallet_that_owes_is_frozen_until_a_deposit_covers_it(
    books: TreasuryBooks, seller: Seller
) -> None:
    event = books.happened("deposited", BUYER, 5)
    spend(books, seller, 4 * BASE)
    books.orphan(event)
    books.happened("deposited", BUYER, 3)
    assert books.money(BUYER) == Money(0, 0, BASE, False, 0, 0)
    assert accept(books, seller, 1) == "wallet_owes"
    assert books.withdraw(BUYER, 1).code == "wallet_owes"
    books.happened("deposited", BUYER, 3)
    assert books.money(BUYER) == Money(2 * BASE, 0, 0, False, 0, 0)
    assert accept(books, seller, 1) == "ok"


def test_a_released_hold_covers_what_its_wallet_owes(books: TreasuryBooks, seller: Seller) -> None:
    event = books.happened("deposited", BUYER, 5)
    order = Order(payer=BUYER, amount=4 * BASE, candidates=(seller.deployment_id,))
    [running] = books.accept([order])
    books.orphan(event)
    assert books.money(BUYER) == Money(0, 4 * BASE, 4 * BASE, False, 0, 0)
    books.end(running.job_id)
    assert books.cover() == 1
    assert books.money(BUYER) == Money(0, 0, 0, False, 0, 0)
    assert books.cover() == 0


def test_a_deposit_that_came_back_in_another_block_is_credited_once(books: TreasuryBooks) -> None:
    block = books.next_block()
    lost = books.see(Seen("deposited", BUYER, 5, block))
    books.book(lost)
    found = books.see(Seen("deposited", BUYER, 5, block, fork=1))
    books.orphan(lost)
    books.book(found)
    assert books.money(BUYER).available == 5 * BASE
    # and the first chain wins again
    books.orphan(found)
    assert books.see(Seen("deposited", BUYER, 5, block)) == lost
    assert books.book(lost) == "ok"
    assert books.money(BUYER).available == 5 * BASE


def test_an_amount_that_nano_cannot_hold_is_refused_and_changes_nothing(
    books: TreasuryBooks,
) -> None:
    event = books.see(Seen("deposited", BUYER, 2**100, books.next_block()))
    assert books.book(event) == "too_large"
    books.happened("deposited", BUYER, 5)
    assert books.book(event) == "too_large"
    assert books.money(BUYER).available == 5 * BASE


# --- exits ------------------------------------------------------------------------------------


def test_an_exit_sets_available_money_aside_and_closes_the_wallet(
    books: TreasuryBooks, seller: Seller
) -> None:
    books.happened("deposited", BUYER, 10)
    order = Order(
        payer=BUYER, amount=4 * BASE, candidates=(seller.deployment_id,), per_request=BASE
    )
    [running] = books.accept([order])
    books.happened("exit-requested", BUYER, 10, ready_at=LATER)
    assert books.money(BUYER) == Money(0, 4 * BASE, 0, True, 6 * BASE, 0)
    assert accept(books, seller, 1) == "exit_open"
    assert books.withdraw(BUYER, 1).code == "exit_open"
    assert books.settle([running], BASE) == ["ok"]
    assert books.money(BUYER) == Money(3 * BASE, 0, 0, True, 6 * BASE, 0)
    # the contract knows of the charge by now: nine of ten are paid
    books.happened("exit-finalized", BUYER, 9)
    assert books.money(BUYER) == Money(0, 0, 0, False, 0, 0)


def test_an_exit_of_more_than_the_wallet_has_is_owed(books: TreasuryBooks, seller: Seller) -> None:
    books.happened("deposited", BUYER, 10)
    spend(books, seller, 4 * BASE)
    books.happened("exit-requested", BUYER, 10, ready_at=LATER)
    books.happened("exit-finalized", BUYER, 10)  # the spend was not committed in time
    assert books.money(BUYER) == Money(0, 0, 4 * BASE, False, 0, 0)
    assert accept(books, seller, 1) == "wallet_owes"


@pytest.mark.parametrize("how", ["cancelled", "lapsed", "orphaned"])
def test_an_exit_that_does_not_happen_gives_everything_back(books: TreasuryBooks, how: str) -> None:
    books.happened("deposited", BUYER, 10)
    ready = datetime(2026, 6, 1, tzinfo=UTC)
    event = books.happened("exit-requested", BUYER, 7, ready_at=int(ready.timestamp()))
    assert books.money(BUYER) == Money(3 * BASE, 0, 0, True, 7 * BASE, 0)
    assert books.lapse(ready + timedelta(hours=72)) == 0
    if how == "cancelled":
        books.happened("exit-cancelled", BUYER, 0)
    elif how == "lapsed":
        assert books.lapse(ready + timedelta(hours=72, seconds=1)) == 1
    else:
        assert books.orphan(event) == "ok"
    assert books.money(BUYER) == Money(10 * BASE, 0, 0, False, 0, 0)


def test_an_exit_cut_to_nothing_has_ended(books: TreasuryBooks) -> None:
    books.happened("deposited", BUYER, 10)
    books.happened("exit-requested", BUYER, 7, ready_at=LATER)
    books.happened("exit-reduced", BUYER, 2)
    assert books.money(BUYER).exiting
    books.happened("exit-reduced", BUYER, 0)
    assert books.money(BUYER) == Money(10 * BASE, 0, 0, False, 0, 0)


def test_a_second_request_replaces_the_first_and_the_first_is_back_when_it_is_orphaned(
    books: TreasuryBooks,
) -> None:
    books.happened("deposited", BUYER, 10)
    books.happened("exit-requested", BUYER, 4, ready_at=LATER)
    second = books.happened("exit-requested", BUYER, 9, ready_at=LATER)
    assert books.money(BUYER) == Money(BASE, 0, 0, True, 9 * BASE, 0)
    books.orphan(second)
    assert books.money(BUYER).exiting
    assert books.money(BUYER).total == 10 * BASE
    books.happened("exit-finalized", BUYER, 4)
    assert books.money(BUYER) == Money(6 * BASE, 0, 0, False, 0, 0)


def test_a_smaller_second_request_gives_the_difference_back(books: TreasuryBooks) -> None:
    books.happened("deposited", BUYER, 10)
    books.happened("exit-requested", BUYER, 9, ready_at=LATER)
    books.happened("exit-requested", BUYER, 2, ready_at=LATER)
    assert books.money(BUYER) == Money(8 * BASE, 0, 0, True, 2 * BASE, 0)


def test_a_late_cancel_of_the_first_request_leaves_the_second_open(books: TreasuryBooks) -> None:
    books.happened("deposited", BUYER, 10)
    first = Seen("exit-requested", BUYER, 4, books.next_block(), (("ready_at", str(LATER)),))
    cancel = Seen("exit-cancelled", BUYER, 0, books.next_block())
    second = Seen("exit-requested", BUYER, 5, books.next_block(), (("ready_at", str(LATER)),))
    ids = [books.see(each) for each in (first, cancel, second)]
    # requests count at once, ends when they are final
    assert [books.book(ids[place]) for place in (0, 2, 1)] == ["ok"] * 3
    assert books.money(BUYER) == Money(5 * BASE, 0, 0, True, 5 * BASE, 0)


def test_a_request_seen_after_the_one_that_replaced_it_changes_nothing(
    books: TreasuryBooks,
) -> None:
    books.happened("deposited", BUYER, 10)
    first = Seen("exit-requested", BUYER, 4, books.next_block(), (("ready_at", str(LATER)),))
    books.happened("exit-requested", BUYER, 5, ready_at=LATER)
    assert books.book(books.see(first)) == "ok"
    assert books.money(BUYER) == Money(5 * BASE, 0, 0, True, 5 * BASE, 0)


# --- withdrawals ------------------------------------------------------------------------------


def test_a_withdrawal_is_paid_from_what_was_set_aside_and_its_fee_is_income(
    books: TreasuryBooks,
) -> None:
    books.happened("deposited", BUYER, 10)
    asked = books.withdraw(BUYER, 6, fee=1)
    assert (asked.code, books.money(BUYER)) == ("ok", Money(4 * BASE, 0, 0, False, 0, 6 * BASE))
    books.happened("withdrawn", BUYER, 6, ref=asked.digest, fee=1)
    assert books.money(BUYER) == Money(4 * BASE, 0, 0, False, 0, 0)
    assert (books.net("treasury"), books.net("fee")) == (-5 * BASE, BASE)
    assert books.fail(asked.id) == "paid"


def test_the_same_signed_withdrawal_has_one_answer_and_another_with_its_nonce_none(
    books: TreasuryBooks,
) -> None:
    books.happened("deposited", BUYER, 10)
    nonce = bytes(range(32))
    first = books.withdraw(BUYER, 3, nonce=nonce)
    again = books.withdraw(BUYER, 3, nonce=nonce)
    assert (again.code, again.id) == ("duplicate", first.id)
    assert books.withdraw(BUYER, 4, nonce=nonce).code == "nonce_used"
    assert books.money(BUYER).pending == 3 * BASE


def test_parallel_withdrawals_take_the_money_once(
    books: TreasuryBooks, fresh_database_url: str
) -> None:
    books.happened("deposited", BUYER, 10)

    def ask(_: int) -> str:
        with TreasuryBooks(fresh_database_url) as mine:
            return str(mine.withdraw(BUYER, 4).code)

    with ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(ask, range(16)))
    assert codes.count("ok") == 2
    assert set(codes) == {"ok", "insufficient_funds"}
    assert books.money(BUYER) == Money(2 * BASE, 0, 0, False, 0, 8 * BASE)


def test_held_money_cannot_be_withdrawn_and_the_refusal_says_so(
    books: TreasuryBooks, seller: Seller
) -> None:
    books.happened("deposited", BUYER, 10)
    assert accept(books, seller, 4 * BASE) == "ok"
    assert books.withdraw(BUYER, 7).code == "funds_on_hold"
    assert books.withdraw(BUYER, 11).code == "insufficient_funds"


def test_a_failed_withdrawal_goes_back_once_and_one_paid_after_that_stops_accepting(
    books: TreasuryBooks,
) -> None:
    books.happened("deposited", BUYER, 10)
    asked = books.withdraw(BUYER, 6)
    assert [books.fail(asked.id), books.fail(asked.id)] == ["ok", "duplicate"]
    assert books.money(BUYER) == Money(10 * BASE, 0, 0, False, 0, 0)
    books.happened("withdrawn", BUYER, 6, ref=asked.digest, fee=0)
    assert books.money(BUYER) == Money(4 * BASE, 0, 0, False, 0, 0)
    assert books.halted()


def test_a_withdrawal_that_we_never_heard_of_is_taken_from_its_wallet(
    books: TreasuryBooks,
) -> None:
    books.happened("deposited", BUYER, 10)
    books.happened("withdrawn", BUYER, 4, ref=b"x" * 32, fee=1)
    assert books.money(BUYER) == Money(6 * BASE, 0, 0, False, 0, 0)
    assert (books.net("treasury"), books.net("fee")) == (-7 * BASE, BASE)
    assert not books.halted()


def test_a_halt_stops_withdrawals_and_their_transactions(
    books: TreasuryBooks, fresh_database_url: str
) -> None:
    books.happened("deposited", BUYER, 10)
    books.one("SELECT offpeak.halt_ledger('a test')")
    assert books.withdraw(BUYER, 1).code == "halted"
    query = "SELECT offpeak.enqueue_transaction(%s, 1, %s, %s, %s, %s, '')"
    with books.as_treasury():
        codes = [
            books.one(query, uuid4(), PAYEE, purpose, uuid4(), PAYEE)[0]
            for purpose in ("withdrawal", "payout", "commit", "anchor")
        ]
    assert codes == ["halted", "halted", "ok", "ok"]


# --- suspense, payouts, what is final ---------------------------------------------------------


def test_a_plain_transfer_waits_in_suspense_until_its_sender_claims_it_and_the_chain_credits_it(
    books: TreasuryBooks,
) -> None:
    event = books.happened("plain-transfer", BUYER, 8)
    claim = uuid4()
    query = "SELECT code, id FROM offpeak.request_claim(%s, %s, %s, %s, %s, %s)"

    def ask(payer: str, signed: bytes) -> str:
        return str(books.one(query, claim, event, payer, signed, b"{}", b"s").code)

    assert ask(OTHER, b"a" * 32) == "not_yours"
    assert [ask(BUYER, b"b" * 32), ask(BUYER, b"b" * 32)] == ["ok", "duplicate"]
    assert ask(BUYER, b"c" * 32) == "claimed"
    assert books.net("suspense") == 8 * BASE
    books.happened("unaccounted-credited", BUYER, 8, ref=uuid_bytes32(claim))
    assert books.money(BUYER).available == 8 * BASE
    assert books.net("suspense") == 0


def test_a_supplier_is_paid_no_more_than_it_has_earned(
    books: TreasuryBooks, seller: Seller
) -> None:
    books.happened("deposited", BUYER, 1_000_000)
    supplier = books.one(
        "SELECT supplier_id AS id FROM offpeak.agent WHERE id = %s", seller.agent_id
    ).id
    with books.as_operator():
        books.connection.execute(
            "UPDATE offpeak.supplier SET payout_address = %s WHERE id = %s", (PAYEE, supplier)
        )
    earn = seller_earns(books, seller, supplier)
    assert books.payout(supplier, OTHER, 1)[0] == "no_address"
    assert books.payout(supplier, PAYEE, earn + 1)[0] == "not_earned"
    code, ref = books.payout(supplier, PAYEE, earn)
    assert (code, books.net("payout_clearing")) == ("ok", earn * BASE)
    assert books.payout(supplier, PAYEE, 1)[0] == "not_earned"
    books.happened("payout-failed", PAYEE, earn, ref=ref)
    assert books.net("payout_clearing") == earn * BASE
    books.happened("paid-out", PAYEE, earn, ref=ref)
    assert books.net("payout_clearing") == 0


def seller_earns(books: TreasuryBooks, seller: Seller, supplier: object) -> int:
    """Let a seller earn at least one base unit; return how many."""
    account = "SELECT offpeak.house_balance_of(offpeak.open_account('supplier', %s, %s)) AS earned"
    books.offer(seller, 8, ask=1_000_000)
    with books.as_operator():
        for _ in range(50):
            spend(books, seller, 9 * BASE)
            earned = int(books.one(account, str(supplier), ASSET).earned) // BASE
            if earned:
                return earned
    raise AssertionError("nothing earned")


def test_a_final_event_that_is_gone_from_the_chain_stops_accepting(books: TreasuryBooks) -> None:
    books.happened("deposited", BUYER, 10)
    asked = books.withdraw(BUYER, 6)
    event = books.happened("withdrawn", BUYER, 6, ref=asked.digest, fee=0)
    assert books.orphan(event) == "halted"
    assert books.halted()


def test_the_application_may_not_book_what_it_likes(books: TreasuryBooks) -> None:
    event = books.see(Seen("deposited", BUYER, 5, books.next_block()))
    for call in (
        "SELECT offpeak.book_event(%s, 'x')",
        "SELECT offpeak.orphan_event(%s)",
        "SELECT offpeak.fail_withdrawal(%s, 'x', '')",
        "SELECT offpeak.cancel_transaction(%s)",
        "SELECT offpeak.request_payout(%s, NULL, '', '', 1)",
        "SELECT offpeak._give(%s, NULL, NULL, 1, '')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            books.one(call, event)
