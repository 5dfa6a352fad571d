"""Accept and settle in Postgres alone: 50 jobs a call against one call per step, on real fsync.

One by one runs on eight connections at once, so that commits can share a flush as far as Postgres
lets them; fifty a call runs on one.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice

from app.db.migrate import migrate
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from ledger.encoding import Address
from tests.bench.measure import Effort, Measurement, Row, at_least, median
from tests.integration.books import Books, Order, Seller, wallet

PER_CALL = 50
CONNECTIONS = 8
SELLERS = 8
AMOUNT, CHARGE = 1_000, 600
FUNDS = 10**15


@dataclass(frozen=True, slots=True)
class Bench:
    """A connection each for the single form, and who trades."""

    books: Sequence[Books]
    sellers: Sequence[Seller]

    def order(self, payer: Address) -> Order:
        """Return a new order for any of the sellers."""
        places = tuple(seller.deployment_id for seller in self.sellers)
        return Order(payer=payer, amount=AMOUNT, candidates=places)


@contextmanager
def open_bench(wallets: int) -> Iterator[Bench]:
    """Yield a database with sellers and funded wallets."""
    with ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres.start(PostgresOptions(fsync=True)))
        url = postgres.create_database("bench")
        migrate(url)
        owner = stack.enter_context(Books(url, role="postgres"))
        sellers = [owner.seller(4 * PER_CALL) for _ in range(SELLERS)]
        for number in range(wallets):
            owner.fund(wallet(number), FUNDS)
        books = [stack.enter_context(Books(url)) for _ in range(CONNECTIONS)]
        yield Bench(books, sellers)


def run_calls(books: Books, orders: Sequence[Order], per_call: int) -> None:
    """Accept and settle all orders, so many in each call."""
    for start in range(0, len(orders), per_call):
        outcomes = books.accept(orders[start : start + per_call], max_open=10**6)
        assert {outcome.code for outcome in outcomes} == {"ok"}
        assert set(books.settle(outcomes, CHARGE)) == {"ok"}


def keep_fresh(bench: Bench) -> None:
    """Let the sellers' agents be seen."""
    for seller in bench.sellers:
        bench.books[0].rows(
            "SELECT offpeak.seen_many(ARRAY[%s]::uuid[], ARRAY[%s]::bigint[], ARRAY[0])",
            seller.agent_id,
            seller.epoch,
        )


def batched(bench: Bench, payers: Sequence[Address], count: int) -> float:
    """Return lifecycles a second at 50 in a call."""
    keep_fresh(bench)
    orders = [bench.order(payer) for payer in islice(cycle(payers), count)]
    begun = time.perf_counter()
    run_calls(bench.books[0], orders, PER_CALL)
    return count / (time.perf_counter() - begun)


def single(bench: Bench, payers: Sequence[Address], count: int) -> float:
    """Return lifecycles a second at one call for each step."""
    keep_fresh(bench)
    orders = [bench.order(payer) for payer in islice(cycle(payers), count)]

    def run_share(place: int) -> None:
        run_calls(bench.books[place], orders[place::CONNECTIONS], 1)

    begun = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(run_share, range(CONNECTIONS)))
    return count / (time.perf_counter() - begun)


def measure(effort: Effort) -> Sequence[Row]:
    """Return the two ratios: micro-batches against single calls, one wallet against many."""
    count, few = effort.of(2_000, quick=200), effort.of(400, quick=80)
    spread = [wallet(number) for number in range(PER_CALL)]
    with open_bench(len(spread)) as bench:
        batched(bench, spread, count)
        single(bench, spread, few)
        rounds = [
            (
                batched(bench, spread, count),
                single(bench, spread, few),
                batched(bench, spread[:1], count),
            )
            for _ in range(effort.of(5, quick=1))
        ]
    return [
        Row(
            name="ledger lifecycle micro-batched",
            measured=median([many / one for many, one, _ in rounds]),
            unit="x",
            bar=at_least(5),
            note=f"{median([m for m, _, _ in rounds]):,.0f}/s at {PER_CALL} a call, "
            f"{median([o for _, o, _ in rounds]):,.0f}/s one by one on {CONNECTIONS} connections",
        ),
        Row(
            name="ledger hot wallet",
            measured=median([hot / many * 100 for many, _, hot in rounds]),
            unit="%",
            bar=at_least(60),
            note="one wallet's lifecycles a second against 50 wallets'",
        ),
    ]


MEASUREMENTS = (Measurement("ledger", measure),)
