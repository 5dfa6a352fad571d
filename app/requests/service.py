"""From a presented acceptance to a job, and from a job to what its buyer may see."""

from dataclasses import dataclass
from uuid import UUID

from app.admission.service import Accepted, AdmissionService
from app.capacity.service import MarketService
from app.db.engine import Database
from app.dispatch.dispatcher import Dispatcher
from app.dispatch.work import AcceptedWork
from app.jobs.content import open_answer
from app.jobs.job import JobState
from app.jobs.repository import JobRepository
from app.jobs.waiters import JobWaiters
from app.kit.cipher import ContentCipher
from app.quotes.errors import RequestMismatch
from app.quotes.quote import CheckedAcceptance, Presented, QuoteKey, check_acceptance, check_quote
from app.receipts.service import RecordService
from app.requests.errors import JobFailed
from app.requests.view import JobView
from app.wallets.signatures import WalletSignatures, is_plain
from ledger.accounts import wallet_account
from ledger.encoding import Address
from pricing.rates import Rates


@dataclass(frozen=True, slots=True)
class RequestParts:
    """What the native flow is put together from."""

    database: Database
    cipher: ContentCipher
    admission: AdmissionService
    market: MarketService
    dispatcher: Dispatcher
    waiters: JobWaiters
    records: RecordService
    signatures: WalletSignatures


@dataclass(frozen=True, slots=True)
class RequestTerms:
    """Whose quotes are accepted here, for which token."""

    quote_key: QuoteKey
    token: Address


class RequestService:
    """The native flow's use cases."""

    def __init__(self, parts: RequestParts, terms: RequestTerms) -> None:
        self._parts = parts
        self._terms = terms

    async def accept(self, presented: Presented) -> Accepted:
        """Return the job that this acceptance made, now or earlier; its work has been handed on.

        Raises:
            QuoteForged, RequestMismatch: the parts do not fit. BadSignature, WrongSigner, others:
            see `WalletSignatures.check`. AdmissionError, QuoteExpired, InsufficientFunds,
            FundsOnHold, Busy: see `AdmissionService.accept`.
        """
        checked = await self._check(presented)
        quote = presented.quote
        places = self._parts.market.candidates(
            quote.model, quote.region, ask_ceiling=quote.ask_nano
        )
        accepted = await self._parts.admission.accept(checked, places)
        if accepted.is_new:
            self._hand_on(accepted, presented)
        return accepted

    async def _check(self, presented: Presented) -> CheckedAcceptance:
        terms = self._terms
        try:
            checked = check_acceptance(presented, terms.quote_key)
        except RequestMismatch:
            # other content under a quote that was accepted is a conflict, not a mistake
            digest = check_quote(presented.quote, presented.quote_signature, terms.quote_key)
            account = wallet_account(presented.quote.payer, terms.token)
            await self._parts.admission.refuse_other_content(digest, account)
            raise
        if presented.quote.token != terms.token:  # quoted before the setting was changed
            raise RequestMismatch(field="token")
        digest, signature = checked.authorization_digest, presented.signature
        payer = presented.authorization.payer
        if not is_plain(digest, signature, signer=payer):
            await self._parts.signatures.check_kept(digest, signature, signer=payer)
        return checked

    def _hand_on(self, accepted: Accepted, presented: Presented) -> None:
        outcome, quote = accepted.outcome, presented.quote
        if outcome.agent_id is None or outcome.lease_id is None or outcome.deployment_id is None:
            return  # the answer to our own first call was lost: the sweep of leases finds it
        self._parts.market.note_taken(outcome.deployment_id)
        self._parts.dispatcher.start(
            AcceptedWork(
                lease_id=outcome.lease_id,
                job_id=accepted.job_id,
                agent_id=outcome.agent_id,
                deployment_id=outcome.deployment_id,
                release=quote.model,
                input_tokens=quote.input_tokens,
                max_output_tokens=quote.max_output_tokens,
                rates=Rates(quote.input_rate_nano, quote.output_rate_nano, quote.per_request_nano),
                max_charge=quote.max_charge_nano,
                request_digest=quote.request_digest,
                salt=presented.salt,
                request=presented.request_canonical,
                remaining_seconds=quote.run_seconds,
            ),
            replica=outcome.replica or "",
        )

    async def wait(
        self, accepted: Accepted, *, payer: Address, wait_seconds: float
    ) -> JobView | None:
        """Return the job once it has ended, None when the wait is over first.

        Raises:
            JobFailed: it ended without an answer.
        """
        job_id = accepted.job_id
        view = None if accepted.is_new else await self.view(job_id, payer=payer)
        if view is None or not view.job.state.is_final:
            if not await self._parts.waiters.wait(job_id, wait_seconds):
                return None
            view = await self.view(job_id, payer=payer)
        if view.job.state in (JobState.FAILED, JobState.EXPIRED, JobState.CANCELLED):
            raise JobFailed(
                job_id=job_id,
                failure_code=view.job.failure_code or view.job.state,
                detail=view.job.failure_detail or "",
            )
        return view

    async def view(self, job_id: UUID, *, payer: Address) -> JobView:
        """Return a wallet's job with its answer and signed record.

        Raises:
            JobNotFound: there is none with this id, or it is another wallet's.
        """
        async with self._parts.database.statement() as tx:
            job = await JobRepository(tx).get(job_id, payer=payer)
        answer = (
            open_answer(self._parts.cipher, job_id, job.result_sealed)
            if job.result_sealed is not None
            else None
        )
        record = await self._parts.records.signed(job_id) if job.state.is_final else None
        return JobView(job, answer, record)
