"""The worker: what must happen whether or not anybody asks. Any number may run.

Each piece of work is safe to do twice at once: price points have one writer by advisory lock,
sweeping skips what another holds, signing is deterministic.
"""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta

import structlog
from prometheus_client import CollectorRegistry

from app.assembly import (
    build_price_point_loop,
    build_sequencer,
    database_of,
    record_domain_of,
    record_service_of,
)
from app.capacity.repository import CapacityRepository
from app.chain.checks import ChainTerms, chain_terms, check_chain
from app.chain.rpc import ChainRpc
from app.config import Settings
from app.db.engine import Database
from app.finance.check import LedgerCheck
from app.finance.house import HouseBooks
from app.jobs.sweeper import Sweeper
from app.kit.exposed import Exposed
from app.kit.periodic import Periodic
from app.receipts.anchoring import Anchoring, AnchoringTerms
from app.treasury.parts import chain_of, new_ids
from app.treasury.work import TreasuryWork, treasury_work

SIGN_LIMIT = 500
PRUNE_LIMIT = 5_000
ROLL_UP_SECONDS = 10
PURGE_SECONDS = 10
SIGN_SECONDS = 5

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Worker:
    """The background loops of one process."""

    database: Database
    loops: Sequence[Periodic]
    chain: ChainRpc | None
    terms: ChainTerms
    treasury: TreasuryWork | None = None
    """What the chain asks for, where one is configured."""
    exposed: Exposed | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Run all loops until `stop` is set; the round under way is given up cleanly.

        Raises:
            ChainMismatch: the settings are of another chain or other contracts; nothing has run.
            RpcUnavailable: no node answers, so that is not known.
            KeyRefused: a configured key of the chain does not open.
        """
        tasks: list[asyncio.Task[None]] = []
        with self.exposed or nullcontext():
            await self._run(stop, tasks)

    async def _run(self, stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
        try:
            await self._check_chain()
            loops = [*self.loops, *(await self.treasury.open() if self.treasury else ())]
            loops += anchoring_loops(self.treasury)
            tasks += [asyncio.create_task(loop.run(), name=loop.name) for loop in loops]
            log.info("worker started", loops=[loop.name for loop in loops])
            await stop.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self.treasury is not None:
                await self.treasury.close()
            if self.chain is not None:
                await self.chain.aclose()
            await self.database.dispose()
            log.info("worker stopped")

    async def _check_chain(self) -> None:
        if self.chain is not None:
            await check_chain(self.chain, self.terms)


def anchoring_loops(work: TreasuryWork | None) -> list[Periodic]:
    """Return what anchors the receipt log, where the anchor's key is open here."""
    if work is None or work.anchor_key is None:
        return []
    terms = AnchoringTerms(
        domain=record_domain_of(work.settings),
        sender=work.anchor_key.address,
        interval=timedelta(seconds=work.settings.anchor_interval_seconds),
    )
    anchoring = Anchoring(work.database, work.rpc, terms, new_ids())
    return [Periodic("anchoring", work.settings.chain_poll_seconds, anchoring.run_once)]


def build_worker(settings: Settings) -> Worker:
    """Return the worker. Connections open when it runs.

    Raises:
        MissingKey: the record key or the checkpoint key is not set.
    """
    database = database_of(settings)
    sweeper, check = Sweeper(database), LedgerCheck(database)
    records = record_service_of(settings, database)
    sequencer = build_sequencer(settings, database)
    points = build_price_point_loop(settings, database)

    async def checked() -> None:
        report = await check.run_and_halt()
        if not report.is_clean:
            log.error("the books do not add up: accepting is stopped", broken=report.summary())

    async def pruned() -> None:
        async with database.transaction() as tx:
            await CapacityRepository(tx).prune(
                keep=timedelta(seconds=settings.market_keep_seconds), limit=PRUNE_LIMIT
            )

    loops = [
        Periodic("price-points", settings.price_point_interval_seconds, points.run_round),
        Periodic("expiry", settings.sweep_interval_seconds, sweeper.expire_once),
        Periodic("retention", PURGE_SECONDS, sweeper.purge_once),
        Periodic("market-history", PURGE_SECONDS, pruned),
        Periodic("house-balances", ROLL_UP_SECONDS, HouseBooks(database).roll_up_once),
        Periodic("signatures", SIGN_SECONDS, lambda: records.sign_unsigned(SIGN_LIMIT)),
        Periodic("receipts", settings.seal_interval_seconds, sequencer.run_once),
        Periodic("ledger-check", settings.ledger_check_seconds, checked),
    ]
    chain = chain_of(settings)
    registry = CollectorRegistry()
    treasury = None if chain is None else treasury_work(settings, chain, registry)
    exposed = Exposed(registry, settings.host, settings.worker_metrics_port)
    return Worker(database, loops, chain, chain_terms(settings), treasury, exposed)
