"""Whole requests through the shipped programs: what they add to the engine, and what they cost.

The engine is the fault engine without a delay: nine tokens at once. Every request carries a wallet
signature; its quote was made and signed for beforehand.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.encoding import Domain
from ledger.signing import SigningKey
from tests.acceptance.site import PROMPT, Site
from tests.bench.buying import acceptance_body, inference_request, quote_body
from tests.bench.http import Connection
from tests.bench.market import durable_commit_seconds
from tests.bench.measure import (
    MICRO,
    MILLI,
    Effort,
    Measurement,
    Row,
    at_most,
    median,
    percentile,
    run_async,
    tree_cpu,
)
from tests.bench.processes import open_serving_site

CONCURRENT = 16
SLOTS = 32
UNAVAILABLE = 503
RESEND_SECONDS = 0.1
ENGINE_BODY = b'{"messages":[{"role":"user","content":"' + PROMPT.encode() + b'"}],"max_tokens":32}'


@dataclass(frozen=True, slots=True)
class Buyers:
    """Funded wallets and where they buy."""

    url: str
    domain: Domain
    keys: Sequence[SigningKey]
    refused: list[bytes] = field(default_factory=list)
    """Bodies of refusals for want of a slot; each was sent again and counts in its time."""

    async def prepare(self, count: int) -> list[bytes]:
        """Return signed acceptances of new quotes, the wallets in turn."""
        connection = await Connection.open(self.url)
        request = inference_request(PROMPT, max_output_tokens=32)
        bodies = []
        for number in range(count):
            key = self.keys[number % len(self.keys)]
            quoted = await connection.post("/v1/quotes", quote_body(key, request))
            assert quoted.status == 200, quoted.body
            bodies.append(acceptance_body(key, request, quoted.body, self.domain))
        await connection.close()
        return bodies

    async def send(self, bodies: Sequence[bytes], *, concurrent: int) -> list[float]:
        """Send all acceptances and return the seconds each took to its answer."""
        seconds: list[float] = []

        async def client(share: Sequence[bytes]) -> None:
            connection = await Connection.open(self.url)
            for body in share:
                begun = time.perf_counter()
                reply = await connection.post("/v1/requests", body)
                while reply.status == UNAVAILABLE:  # on a busy machine a job waits for its agent
                    self.refused.append(reply.body)
                    await asyncio.sleep(RESEND_SECONDS)
                    reply = await connection.post("/v1/requests", body)
                seconds.append(time.perf_counter() - begun)
                assert reply.status == 200, reply.body
            await connection.close()

        await asyncio.gather(*(client(bodies[place::concurrent]) for place in range(concurrent)))
        return seconds


def open_buyers(site: Site, wallets: int) -> Buyers:
    """Return wallets with money."""
    buyers = [site.buyer(tokens=100).client for _ in range(wallets)]
    keys = [client.wallet._key for client in buyers]
    return Buyers(site.urls["gateway"], buyers[0].terms.domain, keys)


async def engine_seconds(url: str, count: int) -> list[float]:
    """Return the seconds of requests to the engine itself."""
    connection = await Connection.open(url)
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        reply = await connection.post("/v1/chat/completions", ENGINE_BODY)
        found.append(time.perf_counter() - begun)
        assert reply.status == 200
    await connection.close()
    return found


@dataclass(slots=True)
class Seconds:
    """Wall times of the three things that are compared."""

    whole: list[float] = field(default_factory=list)
    engine: list[float] = field(default_factory=list)
    commit: list[float] = field(default_factory=list)


async def one_by_one(site: Site, buyers: Buyers, effort: Effort) -> Seconds:
    """Measure in turn the whole way, the engine alone, and a durable commit."""
    await buyers.send(await buyers.prepare(50), concurrent=1)
    found = Seconds()
    count = effort.of(50, quick=10)
    for _ in range(effort.of(10, quick=2)):
        bodies = await buyers.prepare(count)
        found.whole += await buyers.send(bodies, concurrent=1)
        found.engine += await engine_seconds(site.urls["engine"], count)
        found.commit += durable_commit_seconds(site.database_url, commits=count)
    return found


def measure_latency(effort: Effort) -> Sequence[Row]:
    """Return what a request at 1 concurrent adds to the engine's own time."""
    with open_serving_site(slots=4) as site:
        buyers = open_buyers(site, CONCURRENT)
        found = run_async(one_by_one(site, buyers, effort))
    whole, engine = median(found.whole), median(found.engine)
    allowed = 0.002 + 2 * median(found.commit)
    high = percentile(found.whole, 99)
    return [
        Row(
            name="whole request added p50",
            measured=(whole - engine) * MILLI,
            unit="ms",
            bar=at_most(allowed * MILLI),
            note=f"2 ms + two commits of {median(found.commit) * MILLI:.2f} ms; "
            f"whole {whole * MILLI:.1f} ms, engine {engine * MILLI:.1f} ms",
        ),
        Row(
            name="whole request p99 / p50",
            measured=high / whole,
            unit="x",
            bar=at_most(3),
            note=f"p99 {high * MILLI:.1f} ms of {len(found.whole)} requests at 1 concurrent; "
            f"{len(buyers.refused)} times no slot",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Round:
    """Of one round at 16 concurrent: requests a second, CPU seconds per request."""

    rate: float
    gateway: float
    agent: float


async def many(site: Site, buyers: Buyers, effort: Effort) -> list[Round]:
    """Return rounds of requests at 16 concurrent, each wallet with a share."""
    await buyers.send(await buyers.prepare(100), concurrent=CONCURRENT)
    count, rounds = effort.of(640, quick=96), []
    pids = {name: site.processes[name].pid for name in ("gateway", "agent")}
    for _ in range(effort.of(5, quick=1)):
        bodies = await buyers.prepare(count)
        before = {name: tree_cpu(pid) for name, pid in pids.items()}
        begun = time.perf_counter()
        await buyers.send(bodies, concurrent=CONCURRENT)
        wall = time.perf_counter() - begun
        spent = {name: (tree_cpu(pid) - before[name]) / count for name, pid in pids.items()}
        rounds.append(Round(count / wall, spent["gateway"], spent["agent"]))
    return rounds


def measure_many(effort: Effort) -> Sequence[Row]:
    """Return the gateway's CPU of a whole request, and requests a second."""
    with open_serving_site(slots=SLOTS) as site:
        buyers = open_buyers(site, CONCURRENT)
        rounds = run_async(many(site, buyers, effort))
    return [
        Row(
            name="whole request gateway CPU",
            measured=median([each.gateway for each in rounds]) * MICRO,
            unit="us",
            bar=at_most(900),
            note=f"{CONCURRENT} concurrent, a wallet signature each; "
            f"{len(buyers.refused)} times no slot",
        ),
        Row(
            name="whole request agent CPU",
            measured=median([each.agent for each in rounds]) * MICRO,
            unit="us",
        ),
        Row(
            name="whole requests",
            measured=median([each.rate for each in rounds]),
            unit="/s",
            note="all on this machine, Postgres and client too; not compared with LiteLLM yet",
        ),
    ]


MEASUREMENTS = (
    Measurement("whole latency", measure_latency),
    Measurement("whole throughput", measure_many),
)
