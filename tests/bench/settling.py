"""What one settlement costs the gateway: check, charge, record and signature.

Results as an honest agent sends them, 64 at a time, on real Postgres with fsync.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.db.engine import Database, open_database
from app.db.migrate import migrate
from app.dispatch.endings import Endings
from app.dispatch.metering import meter
from app.dispatch.repository import SettleItem
from app.dispatch.service import served_releases
from app.dispatch.session_repository import Offer, SessionRepository
from app.dispatch.work import AcceptedWork, ServedRelease, SlotSpeeds, Work
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.jobs.content import StoredAnswer, seal_answer
from app.kit.cipher import ContentCipher
from app.kit.clock import from_unix_seconds, unix_ms
from app.kit.ids import IdSource
from app.models.catalogue import Catalogue
from app.models.tokenizer import CountingTokenizer
from app.receipts.record import RecordSigner
from app.receipts.service import RecordService
from ledger.encoding import Address
from ledger.statement import SupplierStatement
from ledger.usage import usage_record_domain
from supplier_agent.protocol import Answer, Done, Usage
from tests.bench.measure import (
    MICRO,
    Effort,
    Measurement,
    Row,
    at_most,
    cpu_per_call,
    own_cpu,
    run_async,
)
from tests.integration.markets import market_on
from tests.integration.seed import (
    ASK,
    RATES,
    SeededAgent,
    Wanted,
    accept,
    fund_wallet,
    register_agent,
)

CONCURRENT = 64
SLOTS = 4_096
ANSWER = " ".join(["The support message asks for a refund of a damaged parcel."] * 4)


@dataclass(frozen=True, slots=True)
class Delivered:
    """One DONE with its answer."""

    work: Work
    done: Done
    answer: Answer


async def offer_slots(database: Database, agent: SeededAgent) -> int:
    """Open a session with slots to spare; return its epoch."""
    offer = Offer(
        name="bench",
        release="smollm2-135m-instruct",
        capacity_class="flexible",
        region="local",
        ask=ASK,
        offered=SLOTS,
        offer_until=from_unix_seconds(4_000_000_000),
        prefill=300,
        decode=20,
        gpu_ppm=None,
    )
    async with database.transaction() as tx:
        sessions = SessionRepository(tx)
        epoch = await sessions.open(agent.agent_id, replica="bench", boot_id=str(uuid4()))
        assert epoch is not None
        await sessions.offer(uuid4(), agent.agent_id, epoch, offer)
    return epoch


async def deliver(
    database: Database, cipher: ContentCipher, seller: tuple[SeededAgent, ServedRelease], jobs: int
) -> list[Delivered]:
    """Accept the jobs and write what an honest agent would send for each."""
    agent, release = seller
    wallets = [await fund_wallet(database) for _ in range(32)]
    usage = Usage(
        input_tokens=12, cached_input_tokens=0, output_tokens=release.count_text(ANSWER) + 1
    )
    answer = Answer(ANSWER, "stop", usage)
    delivered = []
    for number in range(jobs):
        wanted = Wanted(max_output=128)
        placed = await accept(database, cipher, wallets[number % len(wallets)], wanted)
        assert placed.agent_id is not None
        assert placed.deployment_id is not None
        accepted = AcceptedWork(
            lease_id=placed.lease_id,
            job_id=placed.job_id,
            agent_id=placed.agent_id,
            deployment_id=placed.deployment_id,
            release=release.id,
            input_tokens=12,
            max_output_tokens=128,
            rates=RATES,
            max_charge=placed.max_charge,
            request_digest=placed.request_digest,
            salt=placed.salt,
            request=placed.request,
            remaining_seconds=60,
        )
        work = Work(
            accepted=accepted,
            deployment="bench",
            speeds=SlotSpeeds(300, 20),
            deadline=1e12,
        )
        delivered.append(Delivered(work, signed_done(work, answer, agent, release), answer))
    return delivered


def signed_done(work: Work, answer: Answer, agent: SeededAgent, release: ServedRelease) -> Done:
    statement = SupplierStatement(
        lease=work.accepted.lease_id,
        job=work.accepted.job_id,
        request_digest=work.accepted.request_digest,
        response_digest=answer.digest,
        input_tokens=answer.usage.input_tokens,
        cached_input_tokens=0,
        output_tokens=answer.usage.output_tokens,
        finish=answer.finish_reason,
        release_fingerprint=release.fingerprint,
    )
    return Done(
        lease=f"lease_{work.accepted.lease_id}",
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        stream_bytes=0,
        response_digest=answer.digest.hex(),
        release_fingerprint=release.fingerprint,
        statement=statement.canonical().decode(),
        statement_signature=statement.sign(agent.key.seed).hex(),
    )


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of one settlement and of two of its parts; settlements a second."""

    whole: float
    check: float
    recount: float
    a_second: float


async def settle_all(url: str, jobs: int) -> Costs:
    """Return CPU seconds of one settlement."""
    database = open_database(url)
    cipher = ContentCipher([os.urandom(32)])
    domain = usage_record_domain(chain_id=31_337, receipt_anchor=Address("0x" + "03" * 20))
    records = RecordService(database, RecordSigner(os.urandom(32), domain))
    ids = IdSource(now_ms=unix_ms, random_bytes=os.urandom)
    endings = Endings(database, records, ids, market=market_on(database)[1], queue_length=2_000)
    catalogue = Catalogue()
    [release] = served_releases(
        catalogue,
        lambda one: CountingTokenizer(one, catalogue.folder_of(one)).count_text,
        SlotSpeeds(300, 20),
    ).values()
    agent = await register_agent(database)
    epoch = await offer_slots(database, agent)
    delivered = []
    for _ in range(jobs // CONCURRENT):
        async with database.statement() as tx:
            await SessionRepository(tx).seen([(agent.agent_id, epoch, 0)])
        delivered += await deliver(database, cipher, (agent, release), CONCURRENT)
    key = Ed25519PublicKey.from_public_bytes(agent.key.public)

    async def settle(some: Sequence[Delivered]) -> None:
        for one in some:
            metered = meter(one.work, one.done, one.answer, release=release, key=key)
            job_id = one.work.accepted.job_id
            sealed = seal_answer(cipher, job_id, StoredAnswer(one.answer.content, "stop"))
            item = SettleItem(one.work.accepted.lease_id, agent.agent_id, metered, sealed)
            assert await endings.settle(item) == "ok"

    async def settle_side_by_side(some: Sequence[Delivered]) -> None:
        await asyncio.gather(*(settle(some[place::CONCURRENT]) for place in range(CONCURRENT)))
        await records.drain()

    await settle_side_by_side(delivered[:CONCURRENT])
    rest = delivered[CONCURRENT:]
    with own_cpu() as spent:
        await settle_side_by_side(rest)
    await database.dispose()
    one = rest[0]
    tokens = one.answer.usage.output_tokens - 1
    uncounted = replace(release, count_text=lambda _: tokens)
    return Costs(
        whole=spent.cpu / len(rest),
        check=cpu_per_call(
            lambda: meter(one.work, one.done, one.answer, release=uncounted, key=key), calls=200
        ),
        recount=cpu_per_call(lambda: release.count_text(ANSWER), calls=200),
        a_second=len(rest) / spent.wall,
    )


def measure(effort: Effort) -> Sequence[Row]:
    """Return the whole settlement, then the agent's part that is checked in it."""
    with EmbeddedPostgres.start(PostgresOptions(fsync=True)) as postgres:
        url = postgres.create_database("bench")
        migrate(url)
        costs = run_async(settle_all(url, effort.of(1_536, quick=256)))
    return [
        Row(
            name="settle gateway CPU",
            measured=costs.whole * MICRO,
            unit="us",
            bar=at_most(350),
            note=f"check, recount, charge, record, signature; {costs.a_second:,.0f}/s",
        ),
        Row(name="settle check of statement", measured=costs.check * MICRO, unit="us"),
        Row(name="settle recount of the text", measured=costs.recount * MICRO, unit="us"),
    ]


MEASUREMENTS = (Measurement("settle", measure),)
