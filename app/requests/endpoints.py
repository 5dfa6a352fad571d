"""HTTP for the native flow."""

import re
from typing import Annotated

import msgspec
import orjson
from fastapi import APIRouter, Depends, Path, Request
from starlette.types import Receive, Scope, Send

from app.jobs.job import ENDED
from app.kit.clock import utc_now
from app.kit.ids import IdPrefix, format_id, parse_id
from app.kit.raw_routes import Answer, RawRoute, Strict, header, read_json, send_json
from app.quotes.quote import Presented
from app.requests.errors import BadPrefer
from app.requests.schemas import JobOut, RequestIn
from app.requests.service import RequestService
from app.requests.view import job_body
from app.wallets.endpoints import ReadHeader, read_gate
from app.wallets.read_access import ReadGate
from app.wallets.signatures import parse_signature
from ledger.authorization import RequestAuthorization
from ledger.encoding import parse_bytes32
from ledger.quote import Quote
from supplier_agent.protocol import InferenceRequest

router = APIRouter(prefix="/v1", tags=["requests"])

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([^\",;\s]*)", re.IGNORECASE)
_SECONDS = re.compile(r"[0-9]{1,9}")
_ASYNC = re.compile(r"(?:^|[,;\s])respond-async(?:$|[,;\s])", re.IGNORECASE)
_ACCEPTED = 202


class RequestWire(Strict, frozen=True):
    """The body of `POST /v1/requests`."""

    quote: dict[str, str]
    quote_signature: str
    request: InferenceRequest
    salt: str
    authorization: dict[str, str]
    signature: str


DECODER = msgspec.json.Decoder(RequestWire)


class PostRequest:
    """`POST /v1/requests`: accept, then wait as long as the caller allows."""

    def __init__(
        self,
        service: RequestService,
        *,
        limit_bytes: int,
        wait_default_seconds: int,
        wait_max_seconds: int,
    ) -> None:
        self._service = service
        self._limit_bytes = limit_bytes
        self._wait_default_seconds = wait_default_seconds
        self._wait_max_seconds = wait_max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decode, accept, wait, answer. The job goes on when the caller hangs up."""
        wait_seconds = self._wait(header(scope, b"prefer"))
        wire = await read_json(scope, receive, decoder=DECODER, limit_bytes=self._limit_bytes)
        presented = presented_of(wire)
        payer = presented.authorization.payer
        accepted = await self._service.accept(presented)
        job_id = accepted.job_id
        view = await self._service.wait(accepted, payer=payer, wait_seconds=wait_seconds)
        status = 200
        if view is None:
            view = await self._service.view(job_id, payer=payer)
            status = 200 if view.job.state in ENDED else _ACCEPTED
        location = f"/v1/jobs/{format_id(IdPrefix.JOB, job_id)}".encode()
        headers = ((b"location", location),) if status == _ACCEPTED else ()
        await send_json(send, orjson.dumps(job_body(view)), status=status, headers=headers)

    def _wait(self, prefer: str) -> int:
        """Return the seconds that `Prefer: wait=N` allows (RFC 7240), or the default.

        `respond-async` without a wait asks for 202 at once.
        """
        match = _WAIT.search(prefer)
        if match is None:
            return 0 if _ASYNC.search(prefer) else self._wait_default_seconds
        given = match[1]
        seconds = int(given) if _SECONDS.fullmatch(given) else self._wait_max_seconds + 1
        if seconds > self._wait_max_seconds:
            raise BadPrefer(given=given, limit_seconds=self._wait_max_seconds)
        return seconds


def presented_of(wire: RequestWire) -> Presented:
    """Return the acceptance in typed form; nothing in it is believed yet.

    Raises:
        MalformedTypedData: a message or the salt has another form. BadSignature:
        a signature is no hex or far too long. NotCanonical: the request has no canonical form.
    """
    return Presented(
        quote=Quote.parse(wire.quote),
        quote_signature=parse_signature(wire.quote_signature),
        request_canonical=wire.request.canonical(),
        salt=parse_bytes32("salt", wire.salt),
        authorization=RequestAuthorization.parse(wire.authorization),
        signature=parse_signature(wire.signature),
    )


def request_service(request: Request) -> RequestService:
    """Return the service that the application was built with."""
    service = request.app.state.requests
    assert isinstance(service, RequestService)
    return service


@router.get("/jobs/{job_id}")
async def get_job(
    job_id: Annotated[str, Path(description="`job_` and a UUID.", max_length=64)],
    requests: Annotated[RequestService, Depends(request_service)],
    gate: Annotated[ReadGate, Depends(read_gate)],
    authorization: ReadHeader = None,
) -> JobOut:
    """Show a job of the signing wallet: its state, answer, charge and signed usage record."""
    payer = await gate.payer(authorization, scope="jobs", now=utc_now())
    view = await requests.view(parse_id(IdPrefix.JOB, job_id), payer=payer)
    return JobOut.model_validate(job_body(view))


def routes(post: PostRequest) -> list[RawRoute]:
    """Return the feature's thin routes with their contract."""
    return [
        RawRoute(
            path="/v1/requests",
            method="POST",
            endpoint=post,
            operation_id="create_request",
            summary="Accept a quote and get the answer",
            tag="requests",
            request=RequestIn,
            answers={
                200: Answer("The answer with its signed usage record.", JobOut),
                202: Answer("Accepted and still running; `Location` is the job.", JobOut),
            },
            refusals=(400, 401, 402, 409, 410, 413, 415, 422, 429, 502, 503),
        )
    ]
