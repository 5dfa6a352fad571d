"""How attempts end in Postgres: settled, ended, moved; each in micro-batches."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.capacity.errors import PriceStale
from app.capacity.service import MarketService
from app.db.engine import Database
from app.db.failures import is_transient, is_unknown
from app.dispatch.lease_repository import LeaseRepository, Market
from app.dispatch.repository import (
    AttemptRepository,
    Candidates,
    EndCode,
    EndItem,
    FaultItem,
    Move,
    MoveItem,
    SettleCode,
    SettleItem,
)
from app.kit.batcher import Batcher, BatchLimits
from app.kit.ids import IdSource
from app.receipts.record import StoredRecord
from app.receipts.repository import ReceiptRepository
from app.receipts.service import RecordService


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """A lease to end and whose job to run elsewhere; `cap_ms` None: its slot time is unpaid."""

    lease_id: UUID
    reason: str
    fault: bool
    lease_state: str
    cap_ms: int | None = None


class Endings:
    """Ends and moves attempts. Records of ended jobs are signed as soon as they have committed."""

    def __init__(
        self,
        database: Database,
        records: RecordService,
        ids: IdSource,
        *,
        market: MarketService,
        queue_length: int,
    ) -> None:
        self._database = database
        self._records = records
        self._ids = ids
        self._market = market
        limits = BatchLimits(queue_length=queue_length)
        self._settle: Batcher[SettleItem, SettleCode] = Batcher(
            self._settle_many, retryable=is_transient, unknown=is_unknown, limits=limits
        )
        self._end: Batcher[EndItem, EndCode] = Batcher(
            self._end_many, retryable=is_transient, unknown=is_unknown, limits=limits
        )
        self._move: Batcher[MoveRequest, Move] = Batcher(
            self._move_many, retryable=is_transient, unknown=is_unknown, limits=limits
        )

    @property
    def queued(self) -> int:
        """Settlements that wait for a call."""
        return self._settle.queued

    async def settle(self, item: SettleItem) -> SettleCode:
        """Settle a result; on return its settlement has committed and its record is signed."""
        return await self._settle.submit(item)

    async def end(self, item: EndItem) -> EndCode:
        """End a job without a result; on return that has committed and its record is signed."""
        return await self._end.submit(item)

    async def move(self, item: MoveRequest) -> Move:
        """End a lease and give its job another slot, if there is one."""
        return await self._move.submit(item)

    async def confirm(self, lease_id: UUID, agent_id: UUID, *, state: str) -> None:
        """Give a half-ended lease's slot back."""
        async with self._database.transaction() as tx:
            await AttemptRepository(tx).confirm([(lease_id, agent_id, state)])

    async def last_reason(self, job_id: UUID) -> str | None:
        """Return how a job's last attempt ended."""
        async with self._database.transaction() as tx:
            return await AttemptRepository(tx).last_reason(job_id)

    async def note_fault(self, fault: FaultItem) -> None:
        """Count a wrong against an agent and keep its signed word."""
        async with self._database.transaction() as tx:
            await AttemptRepository(tx).note_faults([fault])

    async def place(self, jobs: Sequence[tuple[UUID, Market]]) -> list[Move]:
        """Give queued jobs slots, in order."""
        found = self._candidates(market for _, market in jobs)
        items = [(job_id, self._ids.new(), found[market]) for job_id, market in jobs]
        async with self._database.transaction() as tx:
            return await AttemptRepository(tx).place_queued(items)

    async def drain(self) -> None:
        """Refuse new items and return when all taken ones are decided and signed."""
        await self._settle.drain()
        await self._move.drain()
        await self._end.drain()
        await self._records.drain()

    async def _settle_many(self, items: Sequence[SettleItem]) -> Sequence[SettleCode]:
        async with self._database.transaction() as tx:
            codes = await AttemptRepository(tx).settle(items)
            ended = [
                item.metered.job_id
                for item, code in zip(items, codes, strict=True)
                if code in {"ok", "duplicate"}
            ]
            records = await records_of(tx_records=ReceiptRepository(tx), jobs=ended)
        self._records.sign(records)
        return codes

    async def _end_many(self, items: Sequence[EndItem]) -> Sequence[EndCode]:
        async with self._database.transaction() as tx:
            codes = await AttemptRepository(tx).end(items)
            ended = [item.job_id for item, code in zip(items, codes, strict=True) if code == "ok"]
            records = await records_of(tx_records=ReceiptRepository(tx), jobs=ended)
        self._records.sign(records)
        return codes

    async def _move_many(self, items: Sequence[MoveRequest]) -> Sequence[Move]:
        async with self._database.transaction() as tx:
            markets = await LeaseRepository(tx).markets([item.lease_id for item in items])
            found = self._candidates(markets.values())
            moves = [
                MoveItem(
                    lease_id=item.lease_id,
                    new_lease_id=self._ids.new(),
                    reason=item.reason,
                    fault=item.fault,
                    lease_state=item.lease_state,
                    cap_ms=item.cap_ms,
                    candidates=found[markets[item.lease_id]] if item.lease_id in markets else (),
                )
                for item in items
            ]
            return await AttemptRepository(tx).reassign(moves)

    def _candidates(self, markets: Iterable[Market]) -> dict[Market, Candidates]:
        """Return where jobs of each market may run, in the order in which accepting tries them.

        Nothing before the market was first read: the jobs wait for that, as for a slot.
        """
        try:
            return {
                market: self._market.candidates(
                    market.release, market.region, ask_ceiling=market.ask
                )
                for market in dict.fromkeys(markets)
            }
        except PriceStale:
            return defaultdict(tuple)


async def records_of(*, tx_records: ReceiptRepository, jobs: Sequence[UUID]) -> list[StoredRecord]:
    """Return the records of ended jobs, read in the transaction that ended them."""
    return list((await tx_records.records(jobs)).values()) if jobs else []
