"""One wallet with money for k of many concurrent requests, over two gateways at once."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle, islice

from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.errors import ProblemError
from ledger.money import Nano
from tests.acceptance.endstate import come_to_rest, jobs_of
from tests.acceptance.site import REPLY, Buyer
from tests.acceptance.town import GATEWAYS, Town

CLIENTS = 64
CEILING = len(REPLY.split())
"""The answer uses it up, so that a job charges all it held but a nano of rounding."""
ADMITTED = "admitted"
REFUSED = "refused"
JOBS = "jobs"
FOR_WANT_OF_MONEY = frozenset({"funds-on-hold", "insufficient-funds"})


def rush(town: Town, k: int) -> Counter[str]:
    """Accept 64 offers at once with money for exactly `k`; return the answers, counted."""
    wallet = town.site.wallet(Nano(1))
    names = islice(cycle(GATEWAYS), CLIENTS)
    with ExitStack() as stack, ThreadPoolExecutor(max_workers=CLIENTS) as pool:
        clients = [stack.enter_context(town.site.client_of(wallet, name)) for name in names]
        offers = equal_offers(clients, pool)
        town.site.fund(wallet, Nano(k * offers[0].quote.max_charge_nano))
        start = threading.Barrier(CLIENTS)

        def accept(client: Client, checked: CheckedQuote) -> str:
            start.wait(60)
            try:
                client.accept(checked, wait_seconds=0)
            except ProblemError as problem:
                return REFUSED if problem.code in FOR_WANT_OF_MONEY else problem.code
            return ADMITTED

        answers = Counter(pool.map(accept, clients, offers))
    come_to_rest(town.site)
    answers[JOBS] = len(jobs_of(town.site, {wallet.address}))
    return answers


def equal_offers(clients: list[Client], pool: ThreadPoolExecutor) -> list[CheckedQuote]:
    """Return a quote each, all with the same maximum charge: of the same price point."""
    while True:
        offers = list(pool.map(offer_of, clients))
        if len({checked.quote.max_charge_nano for checked in offers}) == 1:
            return offers


def offer_of(client: Client) -> CheckedQuote:
    """Return a quote for an answer that uses its ceiling up."""
    return client.quote(Buyer(client).question(max_output_tokens=CEILING))


def exactly(k: int) -> Counter[str]:
    """Return what `rush` must: `k` admitted, the rest refused for want of money, `k` jobs."""
    return Counter({ADMITTED: k, REFUSED: CLIENTS - k, JOBS: k})
