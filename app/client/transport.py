"""HTTP with the gateway: bounded answers, typed refusals, and resending that cannot pay twice.

What is resent is byte for byte the same. That is safe for every call of this API: reading
changes nothing, a quote reserves nothing, and an acceptance is known by its quote, so that the
second copy gets the first one's job.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from app.client.errors import AnswerMalformed, GatewayUnreachable, ProblemError

MAX_ANSWER_BYTES = 16 * 1024 * 1024
ATTEMPTS = 4
PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 5.0
CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
RESENT_CODES = frozenset({"busy", "database-unavailable", "database-conflict"})
"""Refusals that say: send the same again; what it may have done is found by it."""
STANDARD_MEMBERS = frozenset({"type", "title", "status", "detail", "instance", "code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP call. `wait_seconds` is how long the gateway may hold it before it answers."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer; `raw` are the bytes that `document` was read from."""

    status: int
    document: dict[str, object]
    raw: bytes


class Transport:
    """A connection to one gateway."""

    def __init__(
        self,
        url: str,
        *,
        http: httpx.Client | None = None,
        pause: Callable[[float], None] = time.sleep,
        attempts: int = ATTEMPTS,
    ) -> None:
        """Take the gateway's base URL; `pause` waits between attempts."""
        self.url = url.rstrip("/")
        self._http = http or httpx.Client(follow_redirects=False)
        self._pause = pause
        self._attempts = attempts

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call) -> Reply:
        """Return the answer, after lost connections and `RESENT_CODES` of up to so many calls.

        Raises:
            ProblemError: the gateway refused. GatewayUnreachable: it never answered.
            AnswerMalformed: it answered something else than a JSON object.
        """
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                return self._once(call)
            except httpx.HTTPError as error:
                if last:
                    reason = str(error) or type(error).__name__
                    raise GatewayUnreachable(self.url, reason=reason) from error
                self._pause(PAUSE_SECONDS * 2 ** (attempt - 1))
            except ProblemError as problem:
                if last or problem.code not in RESENT_CODES:
                    raise
                self._pause(_retry_after(problem))
        raise AssertionError("the last attempt returns or raises")

    def _once(self, call: Call) -> Reply:
        timeout = httpx.Timeout(READ_SECONDS + call.wait_seconds, connect=CONNECT_SECONDS)
        headers = {"Accept": "application/json", **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        request = self._http.build_request(
            call.method, self.url + call.path, content=call.body, headers=headers, timeout=timeout
        )
        response = self._http.send(request, stream=True)
        try:
            raw = _bounded(response, what=call.path)
        finally:
            response.close()
        document = _json_object(raw, what=call.path, status=response.status_code)
        if response.is_success:
            return Reply(response.status_code, document, raw)
        raise _problem(document, response)


def _bounded(response: httpx.Response, *, what: str) -> bytes:
    parts = bytearray()
    for chunk in response.iter_bytes():
        parts += chunk
        if len(parts) > MAX_ANSWER_BYTES:
            raise AnswerMalformed(what, reason=f"over {MAX_ANSWER_BYTES} bytes")
    return bytes(parts)


def _json_object(raw: bytes, *, what: str, status: int) -> dict[str, object]:
    try:
        document = json.loads(raw)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise AnswerMalformed(what, reason=f"status {status} without a JSON object")
    return document


def _problem(document: Mapping[str, object], response: httpx.Response) -> ProblemError:
    figures = {name: value for name, value in document.items() if name not in STANDARD_MEMBERS}
    if "retry-after" in response.headers:
        figures.setdefault("retry_after_seconds", response.headers["retry-after"])
    return ProblemError(
        code=str(document.get("code", f"http-{response.status_code}")),
        status=response.status_code,
        title=str(document.get("title", response.reason_phrase)),
        detail=str(document.get("detail", "")),
        figures=figures,
    )


def _retry_after(problem: ProblemError) -> float:
    try:
        wanted = float(str(problem.figures.get("retry_after_seconds", PAUSE_SECONDS)))
    except ValueError:
        wanted = PAUSE_SECONDS
    return min(max(wanted, PAUSE_SECONDS), MAX_PAUSE_SECONDS)
