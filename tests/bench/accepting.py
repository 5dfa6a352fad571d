"""Accepting at 64 concurrent: parse, two signatures, hold, lease and job in one durable commit.

Each round accepts some prepared bodies, then gives as many to a route of the same application
that only parses and recovers. Agents have no sockets, so that nothing is dispatched.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.assembly import Gateway
from app.kit.raw_routes import read_json, send_json
from app.quotes.quote import check_acceptance
from app.requests.endpoints import DECODER, presented_of
from app.wallets.signatures import is_plain
from tests.bench.asgi import Post, call
from tests.bench.buying import acceptance_body, inference_request, quote_body
from tests.bench.market import Market, open_market
from tests.bench.measure import (
    MICRO,
    Effort,
    Measurement,
    Row,
    at_least,
    at_most,
    median,
    own_cpu,
    run_async,
    tree_cpu,
)

CONCURRENT = 64
AGENTS = 8
PROMPT = "A customer writes: my parcel came late and broken, I want my money back. Which topic?"


class AcceptOnly:
    """The accepting half of `POST /v1/requests`: it answers as soon as the job is committed."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept and answer."""
        wire = await read_json(scope, receive, decoder=DECODER, limit_bytes=1_000_000)
        await self._gateway.requests.accept(presented_of(wire))
        await send_json(send, b"{}")


class CheckOnly:
    """Parses and recovers both signatures, and does nothing with them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and answer."""
        wire = await read_json(scope, receive, decoder=DECODER, limit_bytes=1_000_000)
        presented = presented_of(wire)
        checked = check_acceptance(presented, self._gateway.quotes.key)
        payer = presented.authorization.payer
        assert is_plain(checked.authorization_digest, presented.signature, signer=payer)
        await send_json(send, b"{}")


@dataclass(frozen=True, slots=True)
class Round:
    """CPU seconds per request, and requests a second of both routes."""

    gateway: float
    postgres: float
    check: float
    accepts: float
    checks: float


async def prepare(market: Market, count: int) -> list[bytes]:
    """Return acceptances of as many quotes, their wallets in turn."""
    request = inference_request(PROMPT, max_output_tokens=64)
    bodies = []
    for number in range(count):
        key = market.wallets[number % len(market.wallets)]
        quoted = await call(market.app, Post("/v1/quotes", quote_body(key, request)))
        assert quoted.status == 200, quoted.body
        bodies.append(acceptance_body(key, request, quoted.body, market.gateway.domain))
    return bodies


async def post_all(market: Market, path: str, bodies: Sequence[bytes]) -> None:
    """Post all bodies, 64 at any time."""
    statuses: Counter[int] = Counter()

    async def client(place: int) -> None:
        for body in bodies[place::CONCURRENT]:
            statuses[(await call(market.app, Post(path, body))).status] += 1

    await asyncio.gather(*(client(place) for place in range(CONCURRENT)))
    assert set(statuses) == {200}, statuses


async def one_round(market: Market, count: int) -> Round:
    """Measure both routes on the same bodies."""
    bodies = await prepare(market, count)
    await market.refresh()
    with own_cpu() as checking:
        await post_all(market, "/bench/check", bodies)
    before = tree_cpu(market.postgres_pid)
    with own_cpu() as accepting:
        await post_all(market, "/bench/accept", bodies)
    postgres = tree_cpu(market.postgres_pid) - before
    return Round(
        gateway=accepting.cpu / count,
        postgres=postgres / count,
        check=checking.cpu / count,
        accepts=count / accepting.wall,
        checks=count / checking.wall,
    )


async def rounds(effort: Effort) -> list[Round]:
    """Return the measured rounds; a first one warms caches and prepared statements."""
    count, times = effort.of(1_280, quick=128), effort.of(5, quick=1)
    slots = count * (times + 1) // AGENTS + CONCURRENT
    async with open_market(agents=AGENTS, slots=slots, wallets=32) as market:
        market.app.router.routes[:0] = [
            Route("/bench/accept", AcceptOnly(market.gateway), methods=["POST"]),
            Route("/bench/check", CheckOnly(market.gateway), methods=["POST"]),
        ]
        await one_round(market, count)
        return [await one_round(market, count) for _ in range(times)]


def measure(effort: Effort) -> Sequence[Row]:
    """Return CPU per accept, and throughput against the check alone."""
    found = run_async(rounds(effort))
    return [
        Row(
            name="accept gateway CPU",
            measured=median([each.gateway for each in found]) * MICRO,
            unit="us",
            bar=at_most(300),
            note=f"{CONCURRENT} concurrent, {AGENTS} agents, 32 wallets; with the driver",
        ),
        Row(
            name="accept Postgres CPU",
            measured=median([each.postgres for each in found]) * MICRO,
            unit="us",
            bar=at_most(120),
            note="all its processes, fsync on",
        ),
        Row(
            name="accept throughput",
            measured=median([each.accepts / each.checks for each in found]) * 100,
            unit="%",
            bar=at_least(60),
            note=f"of parse + recover in the same app; {median([e.accepts for e in found]):,.0f}/s",
        ),
        Row(
            name="accept check only CPU",
            measured=median([each.check for each in found]) * MICRO,
            unit="us",
            note="parse and recover both signatures",
        ),
    ]


MEASUREMENTS = (Measurement("accept", measure),)
