"""Expected errors as RFC 9457 problem details: one table from class to status, one body.

A test walks every error class of every package, so a new one cannot reach a client as a bare 500.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from uuid import UUID

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Route

import ledger.errors as money
import pricing.errors as price
from app.admission import errors as admission
from app.capacity import errors as capacity
from app.chain import errors as chain
from app.dispatch import errors as dispatch
from app.jobs import errors as jobs
from app.kit import errors as kit
from app.kit.clock import format_time
from app.kit.metrics import Metrics
from app.kit.raw_routes import Disconnected
from app.models import errors as models
from app.quotes import errors as quotes
from app.receipts import errors as receipts
from app.requests import errors as requests
from app.treasury import errors as treasury
from app.wallets import errors as wallets
from ledger.money import Nano, format_amount

TYPE_PREFIX = "https://offpeak.example/problems/"
MEDIA_TYPE = "application/problem+json"
TEXT_LIMIT = 200
LARGEST_EXACT = 2**53 - 1

STATUS: dict[type[Exception], int] = {
    # Reaching the gateway.
    kit.Busy: 503,
    kit.DatabaseUnavailable: 503,
    kit.DatabaseConflict: 503,
    kit.MalformedId: 404,
    kit.NotJson: 415,
    kit.BodyTooLarge: 413,
    kit.BodyTooSlow: 408,
    kit.MalformedJson: 400,
    kit.MalformedRequest: 422,
    kit.ContentUnreadable: 500,
    kit.UnknownContentKey: 500,
    # Who asks.
    wallets.ReadAccessMissing: 401,
    wallets.ReadAccessMalformed: 401,
    wallets.ReadAccessExpired: 401,
    wallets.ReadAccessTooLong: 401,
    wallets.WrongScope: 403,
    wallets.WrongSigner: 401,
    wallets.NotConfirmed: 401,
    wallets.ContractWalletUnsupported: 401,
    wallets.SignatureNotCheckable: 503,
    wallets.TooManySignatureChecks: 429,
    wallets.FundingRefused: 403,
    wallets.ExitOpen: 409,
    wallets.WalletOwes: 402,
    # What is asked.
    models.UnknownModel: 404,
    models.ContextExceeded: 422,
    models.PromptTooLarge: 422,
    models.MalformedMessages: 422,
    models.TooManyMessages: 422,
    models.UnsupportedRole: 422,
    models.LastMessageNotUser: 422,
    models.EmptyMessage: 422,
    models.UnsupportedContent: 422,
    models.LoneSurrogate: 422,
    models.SpecialTokenInText: 422,
    models.ReleaseBroken: 500,
    models.WeightsFetchFailed: 500,
    models.WrongWeights: 500,
    quotes.BadSchema: 422,
    quotes.PromptTooLong: 422,
    quotes.QuoteForged: 422,
    quotes.RequestMismatch: 422,
    quotes.QuoteExpired: 410,
    admission.AuthorizationExpired: 410,
    admission.AuthorizationNotYetValid: 422,
    admission.QuoteUsed: 409,
    admission.NonceUsed: 409,
    admission.NoSlot: 503,
    admission.TooManyOpenJobs: 429,
    admission.AcceptsHalted: 503,
    requests.BadPrefer: 422,
    requests.JobFailed: 502,
    jobs.JobNotFound: 404,
    dispatch.SessionRefused: 403,
    dispatch.AttemptFault: 502,
    # Supply.
    capacity.SupplierExists: 409,
    capacity.SupplierNotFound: 404,
    capacity.BadDeviceKey: 422,
    # The market.
    capacity.NoFreshOffer: 503,
    capacity.PriceStale: 503,
    price.NoCapacity: 503,
    price.RunTooLong: 422,
    price.AmountOutOfRange: 422,
    price.BadCapacityEvent: 500,
    price.BadCosts: 500,
    price.BadCurve: 500,
    price.BadLoad: 500,
    price.BadMargin: 500,
    price.BadSpeed: 500,
    price.BadTokens: 422,
    price.BadUsage: 500,
    # The chain.
    chain.RpcUnavailable: 503,
    chain.RpcRefused: 502,
    chain.MalformedAnswer: 502,
    chain.TransactionMalformed: 500,
    chain.KeyRefused: 500,
    chain.TransactionRefused: 502,
    chain.TransactionReverted: 502,
    chain.TransactionPending: 504,
    # The treasury.
    treasury.ChainMoved: 503,
    treasury.ChainNotConfigured: 501,
    treasury.ClaimDeadline: 422,
    treasury.ClaimTooSmall: 422,
    treasury.EndpointsDisagree: 503,
    treasury.FeeUnknown: 503,
    treasury.FinalBlockUnknown: 503,
    treasury.PayoutRefused: 409,
    treasury.TooManyWithdrawals: 429,
    treasury.TransferClaimed: 409,
    treasury.TransferNotFinal: 409,
    treasury.TransferNotFound: 404,
    treasury.TransferNotYours: 403,
    treasury.WithdrawalDeadline: 422,
    treasury.WithdrawalFeeTooLow: 409,
    treasury.WithdrawalNonceUsed: 409,
    treasury.WithdrawalNotFound: 404,
    treasury.WithdrawalToken: 422,
    treasury.WithdrawalTooSmall: 422,
    treasury.WithdrawalsHalted: 503,
    treasury.WrongSender: 500,
    treasury.KeyStillSends: 409,
    # Money and evidence.
    money.BadAddress: 422,
    money.BadAmount: 422,
    money.BadLength: 422,
    money.BadPrivateKey: 500,
    money.BadSignature: 401,
    money.MalformedTypedData: 422,
    money.NotCanonical: 422,
    money.RecordInconsistent: 500,
    money.BadProof: 422,
    money.BadNote: 500,
    money.BadEntry: 500,
    money.BadReceipt: 422,
    # Receipts and their log.
    receipts.RecordNotFound: 404,
    receipts.EntryNotFound: 404,
    receipts.CheckpointNotFound: 404,
    receipts.BatchNotFound: 404,
    receipts.CheckpointKeyRetired: 500,
    receipts.RotationRefused: 409,
    receipts.LogDamaged: 500,
    receipts.AnchorContradicts: 500,
    money.InsufficientFunds: 402,
    money.FundsOnHold: 402,
    money.DuplicateHold: 409,
    money.UnknownHold: 404,
    money.HoldResolved: 409,
    money.ChargeExceedsHold: 500,
}
"""Every expected error that a request can meet. 500 means: a bug or a broken store, and it says so.

Source of the retry rules: OpenAI's clients repeat 408, 409, 429 and 5xx by themselves; a quote is
good for one acceptance, so 402, 409 and 410 say `x-should-retry: false`.
"""

RETRY_AFTER_SECONDS: dict[type[Exception], int] = {money.FundsOnHold: 5, price.NoCapacity: 5}
NOT_KEPT: Mapping[str, str] = {"Cache-Control": "no-store"}
"""A refusal speaks of one moment: a checkpoint that is not there yet is there a minute later."""
NEVER_RETRY = frozenset({402, 409, 410})
AMOUNTS = frozenset({"available", "held", "required", "charge", "hold"})
HTTP_CODES = {404: "unknown-route", 405: "method-not-allowed", 400: "malformed-request"}


class Problem(BaseModel):
    """RFC 9457 problem details. Each `code` adds figures of its own."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str = Field(pattern="^[a-z][a-z0-9-]*$", examples=["insufficient-funds"])


def install(app: FastAPI, metrics: Metrics) -> None:
    """Answer every error of this application with a problem document."""

    async def expected(request: Request, error: Exception) -> Response:
        metrics.refusals.labels(code_of(error)).inc()
        return problem_response(error, instance=request.url.path)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return await expected(request, malformed(error))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = HTTP_CODES.get(error.status_code, "http-error")
        metrics.refusals.labels(code).inc()
        title = HTTPStatus(error.status_code).phrase
        shown = Shown(code=code, title=title, status=error.status_code, detail=title)
        body = shown.body(instance=request.url.path)
        found = {**(error.headers or {}), **NOT_KEPT}
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            found["Allow"] = ", ".join(methods_at(app, request.url.path))
        return Response(body, error.status_code, found, MEDIA_TYPE)

    async def unexpected(request: Request, _error: Exception) -> Response:
        shown = Shown(
            code="internal-error",
            title="Internal error",
            status=500,
            detail="Something broke here. Sending the same acceptance again is safe: it returns"
            " the first job and is never charged twice.",
        )
        return Response(shown.body(instance=request.url.path), 500, NOT_KEPT, MEDIA_TYPE)

    async def gone(_request: Request, _error: Exception) -> Response:
        return Response(status_code=499)

    for kind in STATUS:
        app.add_exception_handler(kind, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Disconnected, gone)
    app.add_exception_handler(Exception, unexpected)


def methods_at(app: FastAPI, path: str) -> list[str]:
    """Return the methods that a path has; Starlette's own answer names one route's only."""
    found: set[str] = set()
    for route in app.routes:
        if isinstance(route, Route) and route.path_regex.match(path):
            found |= route.methods or set()
    return sorted(found)


def problem_response(error: Exception, *, instance: str) -> Response:
    """Return the response for an expected error."""
    status = STATUS[type(error)]
    title = (type(error).__doc__ or "").partition("\n")[0].rstrip(".")
    shown = Shown(
        code=code_of(error),
        title=title,
        status=status,
        detail=str(error) or title,
        figures=figures(error),
    )
    return Response(shown.body(instance=instance), status, headers(error, status), MEDIA_TYPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a problem document says."""

    code: str
    title: str
    status: int
    detail: str
    figures: Mapping[str, object] = field(default_factory=dict)

    def body(self, *, instance: str) -> bytes:
        """Return the document; RFC 9457's own members win over an error's figures."""
        return orjson.dumps(
            {
                **self.figures,
                "type": TYPE_PREFIX + self.code,
                "title": self.title,
                "status": self.status,
                "detail": self.detail,
                "instance": instance,
                "code": self.code,
            }
        )


def code_of(error: Exception) -> str:
    """Return an expected error's stable code."""
    code = getattr(error, "code", "internal-error")
    assert isinstance(code, str)
    return code


def headers(error: Exception, status: int) -> dict[str, str]:
    """Return what tells a client's retry logic what to do."""
    found = dict(NOT_KEPT)
    seconds = getattr(error, "retry_after_seconds", RETRY_AFTER_SECONDS.get(type(error)))
    if seconds is not None:
        found["Retry-After"] = str(seconds)
    if status in NEVER_RETRY:
        found["X-Should-Retry"] = "false"
    if status == HTTPStatus.UNAUTHORIZED:
        found["WWW-Authenticate"] = "OffpeakRead"
    return found


def figures(error: Exception) -> dict[str, object]:
    """Return the error's figures in wire form; amounts of money become decimal strings."""
    shown: dict[str, object] = {}
    for name, value in vars(error).items():
        match value:
            case bool() | None:
                shown[name] = value
            case int() if name in AMOUNTS and isinstance(error, money.HoldError):
                shown[name] = format_amount(Nano(value))
            case int():
                shown[name] = value if abs(value) <= LARGEST_EXACT else str(value)
            case str():
                shown[name] = value.encode(errors="replace").decode()[:TEXT_LIMIT]
            case datetime():
                shown[name] = format_time(value)
            case UUID():
                shown[name] = str(value)
            case _:
                pass
    return shown


def malformed(error: RequestValidationError) -> kit.MalformedRequest:
    """Return FastAPI's own refusal as ours, without repeating what was sent."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    return kit.MalformedRequest(field=field, reason=str(first["msg"])[:TEXT_LIMIT])
