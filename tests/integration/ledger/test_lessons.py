"""Money races that other systems lost (the rules of the project's list of lessons)."""

from concurrent.futures import ThreadPoolExecutor

from tests.integration.books import Books, Order, digest, wallet

BUYER = wallet(41)
THREADS = 16


def test_first_use_of_a_new_account_never_races(books: Books, fresh_database_url: str) -> None:
    def fund(_: int) -> None:
        with Books(fresh_database_url) as mine:
            mine.fund(BUYER, 10)

    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        list(pool.map(fund, range(THREADS)))

    assert books.balance(BUYER) == (10 * THREADS, 0)


def test_duplicate_keys_inside_one_batch_call_neither_crash_nor_double(books: Books) -> None:
    books.fund(BUYER, 1_000)
    place = (books.seller(8).deployment_id,)
    quote, nonce = digest("quote"), digest("nonce")
    orders = [
        Order(payer=BUYER, amount=100, candidates=place, quote=quote, nonce=nonce),
        Order(payer=BUYER, amount=100, candidates=place, quote=quote, nonce=nonce),
        Order(payer=BUYER, amount=100, candidates=place, quote=quote),
        Order(payer=BUYER, amount=100, candidates=place, quote=quote, request=b"x" * 32),
        Order(payer=BUYER, amount=100, candidates=place, nonce=nonce),
    ]

    outcomes = books.accept(orders)

    codes = [outcome.code for outcome in outcomes]
    assert codes == ["ok", "duplicate", "duplicate", "quote_used", "nonce_used"]
    assert books.balance(BUYER) == (900, 100)
    assert books.settle([outcomes[0]] * 3, 40) == ["ok", "duplicate", "duplicate"]
    assert books.balance(BUYER) == (960, 0)
