"""Refusals of an acceptance. None is stored: the same quote may be tried again until it expires.

* AdmissionError
  - AuthorizationExpired, AuthorizationNotYetValid
  - QuoteUsed, NonceUsed
  - NoSlot, TooManyOpenJobs, AcceptsHalted
"""

from datetime import datetime
from typing import ClassVar


class AdmissionError(Exception):
    """Base of every expected refusal of an acceptance."""

    code: ClassVar[str]


class AuthorizationExpired(AdmissionError):
    """The wallet's authorization is past its deadline; ask for a new quote and sign it."""

    code = "authorization-expired"

    def __init__(self, *, expired_at: datetime) -> None:
        super().__init__(f"expired at {expired_at.isoformat()}")
        self.expired_at = expired_at


class AuthorizationNotYetValid(AdmissionError):
    """The wallet's authorization begins later than 30 seconds from now."""

    code = "authorization-not-yet-valid"

    def __init__(self, *, valid_after: datetime) -> None:
        super().__init__(f"valid after {valid_after.isoformat()}")
        self.valid_after = valid_after


class QuoteUsed(AdmissionError):
    """This quote has been accepted with other content; ask for a new one."""

    code = "quote-used"


class NonceUsed(AdmissionError):
    """This wallet has signed another quote with the same nonce; sign again with a new one."""

    code = "nonce-used"


class NoSlot(AdmissionError):
    """Every authorized slot that this quote covers is taken right now; nothing was held."""

    code = "no-slot"
    retry_after_seconds = 1


class TooManyOpenJobs(AdmissionError):
    """This wallet has as many unfinished jobs as one wallet may have."""

    code = "too-many-open-jobs"
    retry_after_seconds = 1

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"at most {limit} jobs may be open at once")
        self.limit = limit


class AcceptsHalted(AdmissionError):
    """Accepting is stopped while an operator looks at the ledger; running jobs still settle."""

    code = "accepts-halted"
    retry_after_seconds = 60
