"""What can become of an accepted request."""

from typing import ClassVar
from uuid import UUID

from app.kit.ids import IdPrefix, format_id


class RequestError(Exception):
    """Base of every expected failure of the native flow."""

    code: ClassVar[str]


class JobFailed(RequestError):
    """The job ended without an answer; nothing was charged and the hold is released."""

    code = "job-failed"

    def __init__(self, *, job_id: UUID, failure_code: str, detail: str) -> None:
        super().__init__(f"{failure_code}: {detail}")
        self.job_id = format_id(IdPrefix.JOB, job_id)
        self.failure_code = failure_code
        self.charge = 0


class BadPrefer(RequestError):
    """The Prefer header's wait is not a number of seconds within the limit."""

    code = "bad-prefer"

    def __init__(self, *, given: str, limit_seconds: int) -> None:
        super().__init__(f"wait must be 0 to {limit_seconds} (seconds), not {given[:20]!r}")
        self.limit_seconds = limit_seconds
