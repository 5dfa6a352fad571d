"""What a job is: its states and what is known of it. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from ledger.encoding import Address


class JobState(StrEnum):
    """A job's life: queued <-> accepted <-> running, then one of four ends, which are final."""

    QUEUED = "queued"
    ACCEPTED = "accepted"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended, for good."""
        return self in ENDED


ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One accepted request as stored; texts are still sealed. Amounts in nano."""

    id: UUID
    payer: Address
    state: JobState
    release: str
    region: str
    supplier: str | None
    """Name of the supplier of the last attempt."""
    attempts: int
    quote_id: UUID
    held: int
    """What was held when it was accepted, whether or not the hold is over."""
    accepted_at: datetime
    deadline_at: datetime
    ended_at: datetime | None
    result_sealed: bytes | None
    content_until: datetime
    failure_code: str | None
    failure_detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """One job as a list shows it. Amounts in nano; the charge is None until the job has ended."""

    id: UUID
    state: JobState
    release: str
    region: str
    held: int
    charge: int | None
    accepted_at: datetime
    ended_at: datetime | None
