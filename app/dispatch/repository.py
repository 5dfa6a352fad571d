"""Calls of the SQL functions that end and move attempts, inside one transaction.

Each takes a sequence of items and returns one outcome per item, in the items' order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.calls import SqlFunction
from app.dispatch.metering import Evidence, Metered

Candidates = tuple[UUID, ...]
EndState = Literal["failed", "cancelled"]
SettleCode = Literal["ok", "duplicate", "stale", "over_hold"]
EndCode = Literal["ok", "stale"]
MoveCode = Literal["ok", "queued", "exhausted", "stale"]

COMPLETED = 1
CANCELLED = 3


SETTLE = SqlFunction(
    "settle_many",
    {
        "job": "uuid[]",
        "lease": "uuid[]",
        "agent": "uuid[]",
        "charge": "bigint[]",
        "outcome": "smallint[]",
        "usage": "int[]",
        "finish": "text[]",
        "result": "bytea[]",
        "response": "bytea[]",
        "statement_digest": "bytea[]",
        "statement": "bytea[]",
        "statement_signature": "bytea[]",
        "cap_ms": "bigint[]",
        "flagged": "boolean[]",
    },
    columns="code",
)
END = SqlFunction(
    "end_many",
    {
        "job": "uuid[]",
        "lease": "uuid[]",
        "state": "text[]",
        "code": "text[]",
        "detail": "text[]",
        "lease_state": "text[]",
        "cap_ms": "bigint[]",
    },
    columns="code",
)
MOVED = "code, job_id, lease_id, agent_id, replica"
REASSIGN = SqlFunction(
    "reassign_many",
    {
        "lease": "uuid[]",
        "new_lease": "uuid[]",
        "reason": "text[]",
        "fault": "boolean[]",
        "lease_state": "text[]",
        "cap_ms": "bigint[]",
        "candidates": "text[]",
    },
    columns=MOVED,
)
PLACE_QUEUED = SqlFunction(
    "place_queued_many",
    {"job": "uuid[]", "new_lease": "uuid[]", "candidates": "text[]"},
    columns=MOVED,
)
CONFIRM = text(
    "SELECT offpeak.confirm_leases("
    "CAST(:lease AS uuid[]), CAST(:agent AS uuid[]), CAST(:state AS text[]))"
)
MARK_RUNNING = text("SELECT offpeak.mark_running(CAST(:lease AS uuid[]))")
NOTE_FAULTS = text(
    "SELECT offpeak.note_faults(CAST(:agent AS uuid[]), CAST(:lease AS uuid[]),"
    " CAST(:statement AS bytea[]), CAST(:signature AS bytea[]))"
)


LAST_REASON = text(
    "SELECT reason FROM offpeak.lease WHERE job_id = :job ORDER BY attempt DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class SettleItem:
    """A checked result under its lease; `sealed` is what is stored of the answer."""

    lease_id: UUID
    agent_id: UUID
    metered: Metered
    sealed: bytes
    outcome: int = COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class EndItem:
    """A job that ends without a result. `lease_id` None: whatever lease it holds.

    `cap_ms` None: the supplier's fault, its slot time is unpaid.
    """

    job_id: UUID
    lease_id: UUID | None
    state: EndState
    code: str
    detail: str
    lease_state: str
    cap_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveItem:
    """A lease whose job needs another slot; `new_lease_id` names the next attempt."""

    lease_id: UUID
    new_lease_id: UUID
    reason: str
    fault: bool
    lease_state: str
    cap_ms: int | None
    candidates: Candidates


@dataclass(frozen=True, slots=True)
class Move:
    """What became of a move; lease, agent and replica where the job has a slot again."""

    code: MoveCode
    job_id: UUID | None
    lease_id: UUID | None
    agent_id: UUID | None
    replica: str | None


@dataclass(frozen=True, slots=True)
class FaultItem:
    """A wrong of an agent, under a lease where there is one."""

    agent_id: UUID
    lease_id: UUID | None
    evidence: Evidence | None


class AttemptRepository:
    """Ends and moves attempts."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def settle(self, items: Sequence[SettleItem]) -> list[SettleCode]:
        """Charge delivered results and end their jobs."""
        found = await SETTLE.rows(
            self._tx,
            {
                "job": [one.metered.job_id for one in items],
                "lease": [one.lease_id for one in items],
                "agent": [one.agent_id for one in items],
                "charge": [one.metered.charge for one in items],
                "outcome": [one.outcome for one in items],
                "usage": [count for one in items for count in flat_usage(one.metered)],
                "finish": [one.metered.answer.finish_reason for one in items],
                "result": [one.sealed for one in items],
                "response": [one.metered.response_digest for one in items],
                "statement_digest": [one.metered.statement_digest for one in items],
                "statement": [one.metered.evidence.statement for one in items],
                "statement_signature": [one.metered.evidence.signature for one in items],
                "cap_ms": [one.metered.cap_ms for one in items],
                "flagged": [one.metered.flagged for one in items],
            },
        )
        return [code for (code,) in found]

    async def end(self, items: Sequence[EndItem]) -> list[EndCode]:
        """End jobs without a result; their holds are released."""
        found = await END.rows(
            self._tx,
            {
                "job": [one.job_id for one in items],
                "lease": [one.lease_id for one in items],
                "state": [one.state for one in items],
                "code": [one.code for one in items],
                "detail": [one.detail for one in items],
                "lease_state": [one.lease_state for one in items],
                "cap_ms": [one.cap_ms for one in items],
            },
        )
        return [code for (code,) in found]

    async def reassign(self, items: Sequence[MoveItem]) -> list[Move]:
        """End leases and give their jobs other slots."""
        found = await REASSIGN.rows(
            self._tx,
            {
                "lease": [one.lease_id for one in items],
                "new_lease": [one.new_lease_id for one in items],
                "reason": [one.reason for one in items],
                "fault": [one.fault for one in items],
                "lease_state": [one.lease_state for one in items],
                "cap_ms": [one.cap_ms for one in items],
                "candidates": [array_text(one.candidates) for one in items],
            },
        )
        return [Move(*row) for row in found]

    async def place_queued(self, items: Sequence[tuple[UUID, UUID, Candidates]]) -> list[Move]:
        """Give queued jobs, oldest first, slots; items are (job, new lease, candidates)."""
        found = await PLACE_QUEUED.rows(
            self._tx,
            {
                "job": [job_id for job_id, _, _ in items],
                "new_lease": [lease_id for _, lease_id, _ in items],
                "candidates": [array_text(candidates) for _, _, candidates in items],
            },
        )
        return [Move(*row) for row in found]

    async def last_reason(self, job_id: UUID) -> str | None:
        """Return how a job's last attempt ended, None where there was none."""
        reason: str | None = await self._tx.scalar(LAST_REASON, {"job": job_id})
        return reason

    async def confirm(self, items: Sequence[tuple[UUID, UUID, str]]) -> None:
        """End half-ended leases, so that their slots come back; (lease, agent, state)."""
        await self._tx.execute(
            CONFIRM,
            {
                "lease": [lease_id for lease_id, _, _ in items],
                "agent": [agent_id for _, agent_id, _ in items],
                "state": [state for _, _, state in items],
            },
        )

    async def mark_running(self, leases: Sequence[UUID]) -> None:
        """Move the jobs of accepted leases to running."""
        await self._tx.execute(MARK_RUNNING, {"lease": list(leases)})

    async def note_faults(self, items: Sequence[FaultItem]) -> None:
        """Count agents' wrongs and keep what they signed."""
        await self._tx.execute(
            NOTE_FAULTS,
            {
                "agent": [one.agent_id for one in items],
                "lease": [one.lease_id for one in items],
                "statement": [one.evidence and one.evidence.statement for one in items],
                "signature": [one.evidence and one.evidence.signature for one in items],
            },
        )


def flat_usage(metered: Metered) -> tuple[int, int, int, int]:
    """Return usage in the order in which `settle_many` takes it."""
    usage = metered.usage
    return (
        usage.input_tokens,
        usage.cached_input_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    )


def array_text(ids: Candidates) -> str:
    """Return ids as the text of a Postgres array."""
    return "{" + ",".join(map(str, ids)) + "}"
