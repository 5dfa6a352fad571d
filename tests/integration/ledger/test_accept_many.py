"""Slot and funds together or not at all, on a real Postgres."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from ledger.accounts import AccountKind, account_id, wallet_account
from tests.integration.books import ASSET, Books, Order, digest, wallet

BUYER = wallet(1)


def test_an_accept_takes_slot_and_funds_together(books: Books) -> None:
    books.fund(BUYER, 1_000)
    seller = books.seller(2)

    [outcome] = books.accept([Order(payer=BUYER, amount=400, candidates=(seller.deployment_id,))])

    assert outcome.code == "ok"
    assert outcome.replica == "replica-1"
    assert books.balance(BUYER) == (600, 400)
    assert books.occupied(seller) == 1
    assert books.job_state(outcome.job_id) == "accepted"


def test_without_funds_no_slot_is_taken_and_without_a_slot_no_funds(books: Books) -> None:
    books.fund(BUYER, 100)
    seller = books.seller(1)
    place = (seller.deployment_id,)

    outcomes = books.accept(
        [
            Order(payer=BUYER, amount=101, candidates=place),
            Order(payer=BUYER, amount=60, candidates=place),
            Order(payer=BUYER, amount=60, candidates=place),
            Order(payer=BUYER, amount=40, candidates=place),
            Order(payer=wallet(99), amount=1, candidates=place),
        ]
    )

    assert [o.code for o in outcomes] == [
        "insufficient_funds",
        "ok",
        "funds_on_hold",
        "no_slot",
        "insufficient_funds",
    ]
    assert books.balance(BUYER) == (40, 60)
    assert books.occupied(seller) == 1


def test_refusals_are_not_stored_and_may_be_tried_again(books: Books) -> None:
    seller = books.seller(1)
    order = Order(payer=BUYER, amount=50, candidates=(seller.deployment_id,))
    assert books.accept([order])[0].code == "insufficient_funds"

    books.fund(BUYER, 50)

    assert books.accept([order])[0].code == "ok"


def test_the_same_quote_and_request_gets_the_first_job_under_any_nonce(books: Books) -> None:
    books.fund(BUYER, 1_000)
    seller = books.seller(4)
    place = (seller.deployment_id,)
    first = Order(payer=BUYER, amount=100, candidates=place)
    again = Order(payer=BUYER, amount=100, candidates=place, quote=first.quote)

    together = books.accept([first, again, first])
    later = books.accept([again])

    assert [o.code for o in [*together, *later]] == ["ok", "duplicate", "duplicate", "duplicate"]
    assert {o.job_id for o in [*together, *later]} == {first.job_id}
    assert books.balance(BUYER) == (900, 100)
    assert books.occupied(seller) == 1


def test_a_replay_gets_its_job_after_expiry_without_funds_or_slots(books: Books) -> None:
    books.fund(BUYER, 100)
    seller = books.seller(1)
    order = Order(payer=BUYER, amount=100, candidates=(seller.deployment_id,))
    books.accept([order])

    expired = Order(
        payer=BUYER,
        amount=100,
        candidates=(),
        quote=order.quote,
        expires=datetime.now(UTC) - timedelta(hours=1),
        valid_until=datetime.now(UTC) - timedelta(hours=1),
    )

    [outcome] = books.accept([expired])
    assert (outcome.code, outcome.job_id) == ("duplicate", order.job_id)


def test_other_content_under_a_used_quote_or_nonce_is_a_conflict(books: Books) -> None:
    books.fund(BUYER, 1_000)
    place = (books.seller(4).deployment_id,)
    first = Order(payer=BUYER, amount=100, candidates=place)
    books.accept([first])

    other_request = Order(
        payer=BUYER, amount=100, candidates=place, quote=first.quote, request=b"x" * 32
    )
    other_quote = Order(payer=BUYER, amount=100, candidates=place, nonce=first.nonce)

    codes = [o.code for o in books.accept([other_request, other_quote])]
    assert codes == ["quote_used", "nonce_used"]
    assert books.balance(BUYER) == (900, 100)


def test_nonces_of_two_wallets_do_not_meet(books: Books) -> None:
    place = (books.seller(4).deployment_id,)
    for number in (1, 2):
        books.fund(wallet(number), 100)
    nonce = digest("shared")

    outcomes = books.accept(
        [Order(payer=wallet(n), amount=10, candidates=place, nonce=nonce) for n in (1, 2)]
    )

    assert [o.code for o in outcomes] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"expires": -1}, "quote_expired"),
        ({"valid_until": -1}, "authorization_expired"),
        ({"valid_after": 60}, "authorization_not_yet_valid"),
        ({"valid_after": 20}, "ok"),
    ],
)
def test_times_are_judged_by_the_database_clock(
    books: Books, change: dict[str, int], code: str
) -> None:
    books.fund(BUYER, 1_000)
    place = (books.seller(1).deployment_id,)
    times = {name: datetime.now(UTC) + timedelta(seconds=s) for name, s in change.items()}

    [outcome] = books.accept([Order(payer=BUYER, amount=1, candidates=place, **times)])  # type: ignore[arg-type]  # three names, one type

    assert outcome.code == code


def test_a_wallet_has_at_most_so_many_open_jobs(books: Books) -> None:
    books.fund(BUYER, 1_000)
    place = (books.seller(4).deployment_id,)
    orders = [Order(payer=BUYER, amount=1, candidates=place) for _ in range(3)]

    assert [o.code for o in books.accept(orders, max_open=2)] == [
        "ok",
        "ok",
        "too_many_open_jobs",
    ]


def test_a_halted_ledger_accepts_nothing_and_still_settles(books: Books) -> None:
    books.fund(BUYER, 1_000)
    place = (books.seller(4).deployment_id,)
    [running] = books.accept([Order(payer=BUYER, amount=100, candidates=place)])

    books.rows("SELECT offpeak.halt_ledger('figures differ')")

    assert books.accept([Order(payer=BUYER, amount=1, candidates=place)])[0].code == "halted"
    assert books.settle([running], 70) == ["ok"]
    assert books.lift_halt() == 1
    assert books.accept([Order(payer=BUYER, amount=1, candidates=place)])[0].code == "ok"


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE offpeak.agent_session SET seen_at = now() - interval '16 s'",
        "UPDATE offpeak.agent_session SET state = 'offline'",
        "UPDATE offpeak.agent_session SET state = 'draining'",
        "UPDATE offpeak.deployment SET offer_until = now() + interval '20 s'",
        "UPDATE offpeak.deployment SET ask = 2000000000",
        "UPDATE offpeak.deployment SET release = 'another'",
        "UPDATE offpeak.deployment SET region = 'elsewhere'",
    ],
)
def test_a_slot_is_leased_only_fresh_cheap_and_long_enough(
    books: Books, fresh_database_url: str, spoil: str
) -> None:
    books.fund(BUYER, 1_000)
    place = (books.seller(1).deployment_id,)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(spoil.encode())

    assert books.accept([Order(payer=BUYER, amount=1, candidates=place)])[0].code == "no_slot"


def test_the_first_candidate_with_room_gets_the_job(books: Books) -> None:
    books.fund(BUYER, 1_000)
    sellers = [books.seller(2) for _ in range(3)]
    place = tuple(s.deployment_id for s in reversed(sellers))

    books.accept([Order(payer=BUYER, amount=1, candidates=place) for _ in range(3)])

    assert [books.occupied(s) for s in sellers] == [0, 1, 2]


def test_python_and_postgres_name_accounts_alike(books: Books) -> None:
    books.fund(BUYER, 1)
    ids = {row.kind: row.id for row in books.rows("SELECT id, kind FROM offpeak.account")}

    assert ids["wallet"] == wallet_account(BUYER, ASSET)
    assert ids["deposit_clearing"] == account_id(AccountKind.DEPOSIT_CLEARING, "offpeak", ASSET)


# --- races ------------------------------------------------------------------------------------


def race(url: str, orders: list[Order], *, per_call: int = 1) -> list[str]:
    """Accept from one connection per call, all at the same moment; return all codes."""
    chunks = [orders[i : i + per_call] for i in range(0, len(orders), per_call)]
    together = Barrier(len(chunks))

    def go(chunk: list[Order]) -> list[str]:
        with Books(url) as books:
            together.wait()
            return [o.code for o in books.accept(chunk)]

    with ThreadPoolExecutor(max_workers=len(chunks)) as pool:
        return [code for codes in pool.map(go, chunks) for code in codes]


def test_the_last_slot_goes_to_exactly_one_of_64(books: Books, fresh_database_url: str) -> None:
    seller = books.seller(1)
    for number in range(64):
        books.fund(wallet(number), 100)

    codes = race(
        fresh_database_url,
        [Order(payer=wallet(n), amount=100, candidates=(seller.deployment_id,)) for n in range(64)],
    )

    assert sorted(codes) == ["no_slot"] * 63 + ["ok"]
    assert books.occupied(seller) == 1
    held = books.one("SELECT sum(held) AS held FROM offpeak.wallet_balance").held
    assert held == 100, "a refused buyer has nothing held"


def test_the_last_cent_goes_to_exactly_one_of_64(books: Books, fresh_database_url: str) -> None:
    seller = books.seller(64)
    books.fund(BUYER, 100)

    codes = race(
        fresh_database_url,
        [Order(payer=BUYER, amount=100, candidates=(seller.deployment_id,)) for _ in range(64)],
    )

    assert sorted(codes) == ["funds_on_hold"] * 63 + ["ok"]
    assert books.balance(BUYER) == (0, 100)
    assert books.occupied(seller) == 1


@pytest.mark.parametrize("funded_for", [1, 7, 40])
def test_a_hot_wallet_good_for_k_of_64_gets_exactly_k(
    books: Books, fresh_database_url: str, funded_for: int
) -> None:
    sellers = [books.seller(10) for _ in range(8)]
    books.fund(BUYER, 100 * funded_for)
    place = tuple(s.deployment_id for s in sellers)

    codes = race(
        fresh_database_url,
        [Order(payer=BUYER, amount=100, candidates=place) for _ in range(64)],
        per_call=4,
    )

    assert codes.count("ok") == funded_for
    assert set(codes) <= {"ok", "funds_on_hold"}
    assert sum(books.occupied(s) for s in sellers) == funded_for


def test_one_order_sent_by_many_at_once_is_one_job(books: Books, fresh_database_url: str) -> None:
    seller = books.seller(8)
    books.fund(BUYER, 1_000)
    quote = digest("one quote")

    codes = race(
        fresh_database_url,
        [
            Order(payer=BUYER, amount=100, candidates=(seller.deployment_id,), quote=quote)
            for _ in range(32)
        ],
        per_call=2,
    )

    assert sorted(codes) == ["duplicate"] * 31 + ["ok"]
    assert books.balance(BUYER) == (900, 100)
