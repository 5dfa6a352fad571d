"""Accepting, many at a time."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.admission.acceptance import Acceptance, AcceptCode, AcceptOutcome, refusal
from app.admission.errors import QuoteUsed
from app.admission.repository import AcceptTerms, AdmissionRepository
from app.db.engine import Database
from app.db.failures import is_transient
from app.jobs.content import StoredRequest, seal_request
from app.kit.batcher import Batcher, BatchLimits
from app.kit.cipher import ContentCipher
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from app.quotes.quote import CheckedAcceptance
from ledger.accounts import wallet_account


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A job with its slot and its funds; not `is_new` when an earlier accept is replayed."""

    job_id: UUID
    is_new: bool
    outcome: AcceptOutcome


class AdmissionService:
    """Takes checked acceptances; returns jobs or raises why not."""

    def __init__(
        self,
        database: Database,
        cipher: ContentCipher,
        *,
        terms: AcceptTerms,
        limits: BatchLimits | None = None,
    ) -> None:
        self._database = database
        self._cipher = cipher
        self._terms = terms
        self._ids = IdSource(now_ms=unix_ms, random_bytes=secrets.token_bytes)
        self._batcher = Batcher(self._accept_many, retryable=is_transient, limits=limits)

    async def accept(self, checked: CheckedAcceptance, candidates: tuple[UUID, ...]) -> Accepted:
        """Take a slot among `candidates` and hold the maximum charge: both, or neither.

        The same quote and request, whatever the nonce, gets the first job.

        Raises:
            QuoteExpired, AuthorizationExpired, AuthorizationNotYetValid, QuoteUsed, NonceUsed,
            InsufficientFunds, FundsOnHold, TooManyOpenJobs, NoSlot, AcceptsHalted: refused,
            nothing stored. Busy: the queue is full, nothing tried.
        """
        presented = checked.presented
        job_id = self._ids.new()
        item = Acceptance(
            job_id=job_id,
            lease_id=self._ids.new(),
            account_id=wallet_account(presented.authorization.payer, self._terms.asset),
            checked=checked,
            request_sealed=seal_request(
                self._cipher, job_id, StoredRequest(presented.salt, presented.request_canonical)
            ),
            candidates=candidates,
        )
        outcome = await self._batcher.submit(item)
        refused = refusal(item, outcome, max_open_jobs=self._terms.max_open_jobs)
        if refused is not None:
            raise refused
        assert outcome.job_id is not None
        # a repeated call after a lost connection finds its own job: still new to the caller
        is_new = outcome.code is AcceptCode.OK or outcome.job_id == job_id
        return Accepted(job_id=outcome.job_id, is_new=is_new, outcome=outcome)

    async def refuse_other_content(self, quote_digest: bytes, account_id: UUID) -> None:
        """Raise QuoteUsed if this wallet has accepted this quote, with whatever content."""
        async with self._database.statement() as tx:
            if await AdmissionRepository(tx).is_quote_used(quote_digest, account_id):
                raise QuoteUsed

    async def drain(self) -> None:
        """Refuse new acceptances and finish those already taken."""
        await self._batcher.drain()

    async def _accept_many(self, items: Sequence[Acceptance]) -> list[AcceptOutcome]:
        async with self._database.statement() as tx:
            return await AdmissionRepository(tx).accept_many(items, self._terms)
