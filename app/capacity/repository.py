"""Queries on offers, capacity events, price points and booked costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, and_, case, func, or_, select, text
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.capacity.costs import BookedSums
from app.capacity.market import PricePoint
from app.capacity.placement import FRESH, DeploymentOffer
from app.db.tables import (
    agent,
    agent_session,
    capacity_event,
    cost_entry,
    deployment,
    price_point,
    usage_record,
)
from app.db.tables import job as job_table
from ledger.money import Nano
from pricing.floor import Floor
from pricing.load import WINDOW_US, CapacityEvent

PRICE_POINT_LOCK = 0x0FF9EA4D
"""Advisory lock of the one writer of price points and staleness events."""

PRUNE = text("SELECT offpeak.prune_market(CAST(:keep AS interval), :limit)")

MARKET_MEMORY = timedelta(hours=1)
"""A release stays listed this long after its last price point."""

COMPLETED = 1
BATCH_OUTCOMES = (COMPLETED, 3)
"""Outcomes whose tokens were billed: completed, and stopped by the buyer."""


@dataclass(frozen=True, slots=True)
class MarketKey:
    """One release in one region."""

    release: str
    region: str


class CapacityRepository:
    """Reads and writes capacity inside one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def now(self) -> datetime:
        """Return the database clock."""
        now = await self._tx.scalar(select(func.clock_timestamp()))
        assert isinstance(now, datetime)
        return now

    async def take_writer_lock(self) -> bool:
        """Return whether this transaction is now the only writer of price points."""
        return bool(await self._tx.scalar(select(func.pg_try_advisory_xact_lock(PRICE_POINT_LOCK))))

    async def mark_stale(self) -> int:
        """Date the exit of silent agents' offers at last sign of life + 15 s; return how many."""
        marked = await self._tx.scalar(text("SELECT offpeak.mark_stale()"))
        return int(marked or 0)

    async def deployments(self) -> tuple[DeploymentOffer, ...]:
        """Return every deployment that may get new work now."""
        d = deployment.c
        query = (
            select(deployment)
            .join(agent_session, agent_session.c.agent_id == d.agent_id)
            .join(agent, agent.c.id == d.agent_id)
            .where(is_fresh(), is_trusted(), d.offered > 0, d.offer_until > func.now())
        )
        return tuple(
            DeploymentOffer(
                id=row.id,
                release=row.release,
                region=row.region,
                capacity_class=row.capacity_class,
                ask=Nano(row.ask),
                offered=row.offered,
                occupied=row.occupied,
                prefill=max(row.prefill_tokens_per_second, 1),
                decode=max(row.decode_tokens_per_second, 1),
                gpu_activity_ppm=row.gpu_activity_ppm,
            )
            for row in await self._tx.execute(query)
        )

    async def asks(self) -> dict[UUID, Nano]:
        """Return what every deployment asks now, nano per slot-second."""
        rows = await self._tx.execute(select(deployment.c.id, deployment.c.ask))
        return {row.id: Nano(row.ask) for row in rows}

    async def latest_points(self) -> dict[MarketKey, PricePoint]:
        """Return the newest price point of each market that had one lately."""
        p = price_point.c
        query = (
            select(price_point)
            .ext(distinct_on(p.release, p.region))
            .where(p.at > func.now() - MARKET_MEMORY)
            .order_by(p.release, p.region, p.at.desc())
        )
        return {
            MarketKey(row.release, row.region): PricePoint(
                at=row.at,
                load_ppm=row.load_ppm,
                floor=Floor(
                    Nano(row.floor_input), Nano(row.floor_output), Nano(row.floor_per_request)
                ),
                floor_ask=Nano(row.floor_ask),
                curve_version=row.curve_version,
            )
            for row in await self._tx.execute(query)
        }

    async def events(self, *, now: datetime) -> dict[MarketKey, list[CapacityEvent]]:
        """Return each market's events of the load's window and each deployment's last before it."""
        e = capacity_event.c
        start = now - timedelta(microseconds=WINDOW_US)
        inside = select(capacity_event).where(e.at > start, e.at <= now).order_by(e.at, e.id)
        opening = (
            select(capacity_event)
            .ext(distinct_on(e.deployment_id))
            .where(e.at <= start, e.deployment_id.in_(select(deployment.c.id)))
            .order_by(e.deployment_id, e.at.desc(), e.id.desc())
        )
        found: dict[MarketKey, list[CapacityEvent]] = {}
        for query in (opening, inside):
            for row in await self._tx.execute(query):
                found.setdefault(MarketKey(row.release, row.region), []).append(
                    CapacityEvent(
                        deployment=row.deployment_id,
                        at_us=microseconds(row.at),
                        offered=row.offered,
                        occupied=row.occupied,
                    )
                )
        return found

    async def booked_sums(self, *, window: timedelta) -> dict[str, BookedSums]:
        """Return each release's billed tokens and booked costs of the trailing window."""
        billed = (
            select(
                job_table.c.release,
                func.count().label("requests"),
                func.sum(usage_record.c.input_tokens).label("input_tokens"),
                func.sum(usage_record.c.output_tokens).label("output_tokens"),
            )
            .join(job_table, job_table.c.id == usage_record.c.record_id)
            .where(
                usage_record.c.completed_at > func.now() - window,
                usage_record.c.outcome.in_(BATCH_OUTCOMES),
            )
            .group_by(job_table.c.release)
        )
        served = cost_entry.c.kind == "served"
        booked = (
            select(
                cost_entry.c.release,
                func.sum(case((served, cost_entry.c.amount), else_=0)).label("served_nano"),
                func.sum(case((served, cost_entry.c.slot_ms), else_=0)).label("served_ms"),
                func.sum(
                    case((cost_entry.c.kind == "failed_work", cost_entry.c.amount), else_=0)
                ).label("failed_nano"),
            )
            .where(cost_entry.c.booked_at > func.now() - window)
            .group_by(cost_entry.c.release)
        )
        costs = {row.release: row for row in await self._tx.execute(booked)}
        found = {}
        for row in await self._tx.execute(billed):
            cost = costs.get(row.release)
            found[row.release] = BookedSums(
                requests=row.requests,
                input_tokens=int(row.input_tokens),
                output_tokens=int(row.output_tokens),
                served_nano=int(cost.served_nano) if cost else 0,
                served_slot_ms=int(cost.served_ms) if cost else 0,
                failed_nano=int(cost.failed_nano) if cost else 0,
            )
        return found

    async def add_price_points(self, points: Iterable[tuple[MarketKey, PricePoint]]) -> None:
        """Store points; a second that has one keeps it, so that quotes stay recomputable."""
        rows = [
            {
                "release": key.release,
                "region": key.region,
                "at": point.at,
                "load_ppm": point.load_ppm,
                "floor_input": point.floor.input_rate,
                "floor_output": point.floor.output_rate,
                "floor_per_request": point.floor.per_request,
                "floor_ask": point.floor_ask,
                "curve_version": point.curve_version,
            }
            for key, point in points
        ]
        if rows:
            await self._tx.execute(insert(price_point).values(rows).on_conflict_do_nothing())

    async def prune(self, *, keep: timedelta, limit: int) -> int:
        """Forget price points and capacity events older than `keep`; return how many."""
        gone = await self._tx.scalar(PRUNE, {"keep": keep, "limit": limit})
        return int(gone or 0)


def is_fresh() -> ColumnElement[bool]:
    """Return the condition that an agent is online and was seen lately."""
    return and_(agent_session.c.state == "online", agent_session.c.seen_at > func.now() - FRESH)


def is_trusted() -> ColumnElement[bool]:
    """Return the condition that an agent is not resting after faults."""
    return or_(agent.c.resting_until.is_(None), agent.c.resting_until <= func.now())


def microseconds(at: datetime) -> int:
    """Return exact microseconds since 1970."""
    return (at - EPOCH) // timedelta(microseconds=1)


EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
