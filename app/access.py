"""Around every request: an id, the body limit, the access log and the counters. No content."""

import re
import time
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.kit.errors import BodyTooLarge
from app.kit.metrics import Metrics
from app.kit.raw_routes import header
from app.problems import problem_response

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
UNROUTED = "(none)"
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger()


class Access:
    """ASGI middleware. Answers 413 itself when the announced body is too large."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, limit_bytes: int) -> None:
        self._app = app
        self._metrics = metrics
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and account for it, whatever happens to it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = header(scope, b"x-request-id")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
        started = time.perf_counter()
        status = 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                if self._too_large(scope):
                    refusal = BodyTooLarge(limit_bytes=self._limit_bytes)
                    response = problem_response(refusal, instance=scope["path"])
                    await response(scope, receive, send_with_id)
                else:
                    await self._app(scope, receive, send_with_id)
            finally:
                self._account(scope, status, time.perf_counter() - started)

    def _too_large(self, scope: Scope) -> bool:
        announced = header(scope, b"content-length")
        digits = announced.isascii() and announced.isdigit()
        return digits and int(announced[:20]) > self._limit_bytes

    def _account(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_of(scope)
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        if route not in QUIET:
            log.info(
                "request", method=method, route=route, status=status, ms=round(seconds * 1_000, 2)
            )


def route_of(scope: Scope) -> str:
    """Return the route's template (`/v1/jobs/{job_id}`), never the path, which holds ids."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else UNROUTED
