"""What an acceptance asks of the database, and what its answer means. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.admission.errors import (
    AcceptsHalted,
    AuthorizationExpired,
    AuthorizationNotYetValid,
    NonceUsed,
    NoSlot,
    QuoteUsed,
    TooManyOpenJobs,
)
from app.kit.clock import from_unix_seconds
from app.quotes.errors import QuoteExpired
from app.quotes.quote import CheckedAcceptance
from app.wallets.errors import ExitOpen, WalletOwes
from ledger.errors import FundsOnHold, InsufficientFunds


class AcceptCode(StrEnum):
    """The answers of `offpeak.accept_many`, one per item."""

    OK = "ok"
    DUPLICATE = "duplicate"
    QUOTE_USED = "quote_used"
    NONCE_USED = "nonce_used"
    HALTED = "halted"
    QUOTE_EXPIRED = "quote_expired"
    AUTHORIZATION_EXPIRED = "authorization_expired"
    AUTHORIZATION_NOT_YET_VALID = "authorization_not_yet_valid"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    FUNDS_ON_HOLD = "funds_on_hold"
    TOO_MANY_OPEN_JOBS = "too_many_open_jobs"
    NO_SLOT = "no_slot"
    EXIT_OPEN = "exit_open"
    WALLET_OWES = "wallet_owes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """One checked acceptance with the ids and places it may get."""

    job_id: UUID
    lease_id: UUID
    account_id: UUID
    checked: CheckedAcceptance
    request_sealed: bytes
    candidates: tuple[UUID, ...]
    """Deployments that may take it, the preferred ones first; at most `MAX_CANDIDATES`."""


@dataclass(frozen=True, slots=True)
class AcceptOutcome:
    """What the database decided. `available` and `held` (nano) are of before the decision."""

    code: AcceptCode
    job_id: UUID | None
    lease_id: UUID | None
    agent_id: UUID | None
    deployment_id: UUID | None
    replica: str | None
    deadline_at: datetime | None
    available: int | None
    held: int | None


def refusal(asked: Acceptance, outcome: AcceptOutcome, *, max_open_jobs: int) -> Exception | None:
    """Return the typed refusal that an outcome means, or None when there is a job."""
    if outcome.code in (AcceptCode.OK, AcceptCode.DUPLICATE):
        return None
    return _funds_refusal(asked, outcome) or _other_refusal(
        asked, outcome.code, max_open_jobs=max_open_jobs
    )


def _funds_refusal(asked: Acceptance, outcome: AcceptOutcome) -> Exception | None:
    required = asked.checked.presented.quote.max_charge_nano
    available, held = outcome.available or 0, outcome.held or 0
    if outcome.code is AcceptCode.INSUFFICIENT_FUNDS:
        return InsufficientFunds(available=available, required=required)
    if outcome.code is AcceptCode.FUNDS_ON_HOLD:
        return FundsOnHold(available=available, held=held, required=required)
    return None


def _other_refusal(asked: Acceptance, code: AcceptCode, *, max_open_jobs: int) -> Exception | None:
    quote = asked.checked.presented.quote
    authorization = asked.checked.presented.authorization
    refusals: dict[AcceptCode, Callable[[], Exception]] = {
        AcceptCode.QUOTE_USED: QuoteUsed,
        AcceptCode.NONCE_USED: NonceUsed,
        AcceptCode.HALTED: AcceptsHalted,
        AcceptCode.NO_SLOT: NoSlot,
        AcceptCode.EXIT_OPEN: ExitOpen,
        AcceptCode.WALLET_OWES: WalletOwes,
        AcceptCode.TOO_MANY_OPEN_JOBS: lambda: TooManyOpenJobs(limit=max_open_jobs),
        AcceptCode.QUOTE_EXPIRED: lambda: QuoteExpired(
            expired_at=from_unix_seconds(quote.expires_at)
        ),
        AcceptCode.AUTHORIZATION_EXPIRED: lambda: AuthorizationExpired(
            expired_at=from_unix_seconds(authorization.deadline)
        ),
        AcceptCode.AUTHORIZATION_NOT_YET_VALID: lambda: AuthorizationNotYetValid(
            valid_after=from_unix_seconds(authorization.valid_after)
        ),
    }
    make = refusals.get(code)
    return make() if make else None
