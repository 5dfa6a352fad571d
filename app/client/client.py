"""The typed client: one method per thing a buyer does."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar
from urllib import parse

from pydantic import BaseModel, ValidationError

from app.capacity.schemas import CapacityList, ModelList
from app.client.asking import Asked, Question, Turn
from app.client.checks import CheckedQuote, checked_quote
from app.client.documents import JobDocument, JobPage, QuoteDocument
from app.client.errors import (
    AnswerMalformed,
    ClientError,
    JobFailed,
    JobUnfinished,
    ProblemError,
    WrongChain,
    WrongDomain,
)
from app.client.records import SignedRecord, verify_record, verify_stored
from app.client.terms import Terms
from app.client.transport import Call, Reply, Transport
from app.client.wallet import Wallet
from app.receipts.schemas import LogKeysOut, ReceiptPageOut
from app.treasury.schemas import (
    SuspenseListOut,
    SuspenseOut,
    TreasuryOut,
    WithdrawalOut,
    WithdrawalPageOut,
)
from app.wallets.schemas import BalanceOut
from ledger.authorization import ReadAccess, SuspenseClaim, Withdrawal
from ledger.encoding import Address
from ledger.money import Nano
from ledger.usage import UsageRecord

ACCESS_SECONDS = 600
"""How long a signed read access is good for; renewed when less than a tenth is left."""
LONGEST_WAIT_SECONDS = 300
POLL_SECONDS = 0.5
OTHER_DOMAIN = frozenset({"bad-signature"})
"""How a gateway refuses a signature that was made for another chain or contract."""

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time and randomness come from."""

    now: Callable[[], float] = time.time  # noqa: TID251  # the client's edge: a default
    pause: Callable[[float], None] = time.sleep
    random_bytes: Callable[[int], bytes] = secrets.token_bytes


class Client:
    """A buyer's view of one gateway."""

    def __init__(
        self,
        transport: Transport,
        terms: Terms,
        *,
        wallet: Wallet | None = None,
        payer: Address | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take where to ask, what is signed for, and who pays.

        Without a wallet it can look, and quote for `payer`.
        """
        self._transport = transport
        self.terms = terms
        self._wallet = wallet
        self._payer = wallet.address if wallet else payer
        self._clock = clock or Clock()
        self._access: dict[str, tuple[int, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._transport.close()

    @property
    def wallet(self) -> Wallet:
        """The paying wallet."""
        assert self._wallet is not None, "this client was made without a wallet"
        return self._wallet

    def pause(self, seconds: float) -> None:
        """Wait, by this client's clock."""
        self._clock.pause(seconds)

    def models(self) -> ModelList:
        """Return the approved model releases and their rates now."""
        return self._look(ModelList, "/v1/models")

    def capacity(self) -> CapacityList:
        """Return offered and occupied slots, load and price point of every market."""
        return self._look(CapacityList, "/v1/capacity")

    def balance(self) -> BalanceOut:
        """Return the wallet's money, every bucket apart."""
        return self._read(BalanceOut, "/v1/balances", scope="balances")

    def quote(
        self, question: Question, *, region: str | None = None, limit: Nano | None = None
    ) -> CheckedQuote:
        """Return a checked quote for a question; nothing is reserved or signed.

        Raises:
            QuoteRefused: the quote is not for what was asked, or above `limit`.
            ProblemError, GatewayUnreachable, AnswerMalformed: see `Transport.send`.
        """
        assert self._payer is not None, "this client was made without a payer"
        asked = Asked(
            payer=self._payer,
            question=question,
            salt=self._clock.random_bytes(32),
            region=region,
            limit=limit,
        )
        body: dict[str, object] = {
            "payer": asked.payer,
            "salt": "0x" + asked.salt.hex(),
            "request": question.request(),
        }
        if region is not None:
            body["region"] = region
        reply = self._transport.send(_post("/v1/quotes", body))
        document = _parsed(QuoteDocument, reply.document, what="/v1/quotes")
        return checked_quote(document, asked, self.terms, now=int(self._clock.now()))

    def accept(self, checked: CheckedQuote, *, wait_seconds: int = 60) -> JobDocument:
        """Sign a checked quote and send the request; resending it cannot pay twice.

        Returns:
            The job, ended or (after `wait_seconds`, at most 300) still running.

        Raises:
            ProblemError: refused, nothing was charged. GatewayUnreachable: nothing came back;
                accepting the same quote again is safe and returns the first job.
        """
        signature = self.wallet.sign_quote(checked)
        body = {
            "quote": checked.document.quote,
            "quote_signature": checked.document.signature,
            "request": checked.asked.question.request(),
            "salt": "0x" + checked.asked.salt.hex(),
            "authorization": checked.authorization.message(),
            "signature": "0x" + signature.hex(),
        }
        wait = min(max(wait_seconds, 0), LONGEST_WAIT_SECONDS)
        headers = {"Prefer": f"wait={wait}"}
        reply = self._transport.send(_post("/v1/requests", body, headers=headers, wait=wait))
        return _parsed(JobDocument, reply.document, what="/v1/requests")

    def treasury(self) -> TreasuryOut:
        """Return where money goes in and out, and what it costs now, as the gateway states it."""
        return self._look(TreasuryOut, "/v1/treasury")

    def withdraw(self, message: Withdrawal) -> WithdrawalOut:
        """Sign a withdrawal and send it; the same message sent again is not paid twice.

        Raises:
            ProblemError: refused, nothing was taken. GatewayUnreachable: nothing came back.
        """
        signature = self.wallet.sign_digest(message.digest(self.terms.domain))
        body = {"withdrawal": message.message(), "signature": "0x" + signature.hex()}
        reply = self._transport.send(_post("/v1/withdrawals", body))
        return _parsed(WithdrawalOut, reply.document, what="/v1/withdrawals")

    def withdrawal(self, withdrawal_id: str) -> WithdrawalOut:
        """Return one of this wallet's withdrawals."""
        path = f"/v1/withdrawals/{parse.quote(withdrawal_id, safe='')}"
        return self._read(WithdrawalOut, path, scope="balances")

    def withdrawals(self, *, limit: int = 20, before: str | None = None) -> WithdrawalPageOut:
        """Return this wallet's withdrawals, newest first, up to `limit` before `before`."""
        query = {"limit": str(limit)} | ({} if before is None else {"before": before})
        path = f"/v1/withdrawals?{parse.urlencode(query)}"
        return self._read(WithdrawalPageOut, path, scope="balances")

    def transfers(self) -> SuspenseListOut:
        """Return the tokens that this wallet sent past its deposits and that are not credited."""
        return self._read(SuspenseListOut, "/v1/suspense", scope="balances")

    def claim(self, message: SuspenseClaim) -> SuspenseOut:
        """Sign a claim of such tokens and send it; the same message counts once.

        Raises:
            ProblemError: refused. GatewayUnreachable: nothing came back.
        """
        signature = self.wallet.sign_digest(message.digest(self.terms.domain))
        body = {"claim": message.message(), "signature": "0x" + signature.hex()}
        reply = self._transport.send(_post("/v1/suspense-claims", body))
        return _parsed(SuspenseOut, reply.document, what="/v1/suspense-claims")

    def job(self, job_id: str) -> JobDocument:
        """Return one of this wallet's jobs."""
        path = f"/v1/jobs/{parse.quote(job_id, safe='')}"
        return self._read(JobDocument, path, scope="jobs")

    def jobs(self, *, limit: int = 20, before: str | None = None) -> JobPage:
        """Return this wallet's jobs, newest first: up to `limit` (at most 100) before `before`."""
        query = {"limit": str(limit)} | ({} if before is None else {"before": before})
        return self._read(JobPage, f"/v1/jobs?{parse.urlencode(query)}", scope="jobs")

    def receipt(self, record_id: str) -> bytes:
        """Return the receipt of one of this wallet's jobs: a file for `offpeak-verify`."""
        path = f"/v1/receipts/{parse.quote(record_id, safe='')}"
        return self._read_reply(path, scope="receipts").raw

    def receipts(self, *, limit: int = 100, after: int = 0) -> ReceiptPageOut:
        """Return this wallet's records in their order, up to `limit` after number `after`."""
        query = parse.urlencode({"limit": limit, "after": after})
        return self._read(ReceiptPageOut, f"/v1/receipts?{query}", scope="receipts")

    def log_keys(self) -> LogKeysOut:
        """Return the keys of the gateway's receipt log, as it states them."""
        return self._look(LogKeysOut, "/v1/log/keys")

    def result(self, job: JobDocument, *, wait_seconds: float) -> JobDocument:
        """Return the job once it has completed.

        Raises:
            JobFailed: it ended without a result. JobUnfinished: it still runs.
        """
        waited = 0.0
        while not job.ended:
            if waited >= wait_seconds:
                raise JobUnfinished(job.id, state=job.state, waited_seconds=wait_seconds)
            self._clock.pause(POLL_SECONDS)
            waited += POLL_SECONDS
            job = self.job(job.id)
        if job.state != "completed":
            failure = f"{job.failure.code}: {job.failure.detail}" if job.failure else "no reason"
            raise JobFailed(job.id, state=job.state, failure=failure)
        return job

    def ask(
        self,
        checked: CheckedQuote,
        *,
        wait_seconds: int = 60,
        on_accepted: Callable[[JobDocument], None] = lambda _: None,
    ) -> JobDocument:
        """Accept a quote and return its completed job; see `accept` and `result`.

        `on_accepted` hears of the job before anything is waited for, so that its id is never lost.
        """
        job = self.accept(checked, wait_seconds=0)
        on_accepted(job)
        if not job.ended:  # the same acceptance once more: it finds its job and waits for it
            job = self.accept(checked, wait_seconds=wait_seconds)
        if not job.ended:
            raise JobUnfinished(job.id, state=job.state, waited_seconds=wait_seconds)
        return self.result(job, wait_seconds=0)

    def verify(self, job: JobDocument, checked: CheckedQuote) -> UsageRecord:
        """Return the job's usage record after recomputing it; RecordRefused when it is wrong."""
        return verify_record(job, checked, self.terms)

    def verify_stored(self, job: JobDocument) -> SignedRecord:
        """Return the job's record as far as it can be recomputed without its quote."""
        return verify_stored(job, self.terms, payer=self.wallet.address)

    def _look(self, model: type[Model], path: str) -> Model:
        reply = self._transport.send(Call(method="GET", path=path, headers={}))
        return _parsed(model, reply.document, what=path)

    def _read(self, model: type[Model], path: str, *, scope: str) -> Model:
        """Return what only the wallet may read; a refused signature is traced to its domain."""
        return _parsed(model, self._read_reply(path, scope=scope).document, what=path)

    def _read_reply(self, path: str, *, scope: str) -> Reply:
        call = Call(method="GET", path=path, headers=self._read_headers(scope))
        try:
            return self._transport.send(call)
        except ProblemError as problem:
            if problem.code in OTHER_DOMAIN:
                self._compare_domains()
            raise

    def _compare_domains(self) -> None:
        """Return unless a quote shows that the gateway's domain is not ours.

        Raises:
            WrongChain, WrongDomain: it is not; this is why it took our signature for another's.
        """
        try:
            model = self.models().models[0].id
            self.quote(Question(model=model, turns=(Turn("user", "?"),), max_output_tokens=1))
        except (WrongChain, WrongDomain):
            raise
        except (ClientError, IndexError):
            return  # no quote to be had: the refusal itself is told

    def _read_headers(self, scope: str) -> dict[str, str]:
        now = int(self._clock.now())
        valid_until, header = self._access.get(scope, (0, ""))
        if valid_until - now < ACCESS_SECONDS // 10:
            valid_until = now + ACCESS_SECONDS
            nonce = self._clock.random_bytes(32)
            access = ReadAccess(self.wallet.address, scope, valid_until, nonce)
            header = self.wallet.read_header(access, self.terms.domain)
            self._access[scope] = (valid_until, header)
        return {"Authorization": header}


def _post(
    path: str,
    body: Mapping[str, object],
    *,
    headers: Mapping[str, str] | None = None,
    wait: float = 0.0,
) -> Call:
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return Call(method="POST", path=path, headers=headers or {}, body=raw, wait_seconds=wait)


def _parsed(model: type[Model], document: Mapping[str, object], *, what: str) -> Model:
    try:
        return model.model_validate(document, extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise AnswerMalformed(what, reason=f"{where}: {first['msg']}") from None
