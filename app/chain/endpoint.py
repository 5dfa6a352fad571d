"""One JSON-RPC URL: bounded answers, and what went wrong as a short text that names no URL.

URLs often hold an API key, so nothing here shows one: an endpoint is `rpc-<n> (host)`.
"""

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httpx

from app.chain.quantities import MalformedValue, data

_OWN_STATUS: Final = frozenset({401, 403, 407, 429})
"""The endpoint refuses us, whatever the body says; other 4xx may carry a JSON-RPC error."""
_MESSAGE_LIMIT: Final = 200
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_TOO_LARGE: Final = re.compile(
    r"block range|range (is )?(too|limit)|more than \d+ (results|logs)|too many (results|logs)"
    r"|response (size|is too)|limited to|max(imum)? (block )?range|query timeout",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcLimits:
    """How long and how much: seconds of a whole call, bytes of an answer, blocks of a log query."""

    connect_seconds: float = 3.0
    call_seconds: float = 10.0
    answer_bytes: int = 16 * 1024 * 1024
    log_blocks: int = 2_000
    log_count: int = 100_000


class EndpointFailed(Exception):
    """This endpoint gave no usable answer; the next one may. Its text names no URL."""


class AnswerTooLarge(EndpointFailed):
    """The answer, or what it would take to make it, is over a limit of theirs or ours."""


class RpcFault(Exception):
    """The endpoint answered with a JSON-RPC error; `data` is the revert's, when there is any."""

    def __init__(self, code: int, message: str, fault_data: bytes | None) -> None:
        super().__init__(f"error {code}: {message}")
        self.code = code
        self.message = message
        self.data = fault_data

    @property
    def is_revert(self) -> bool:
        """Whether the call was executed and reverted, or its sender could not pay for it.

        Code 3 is geth's (and that of most others); older nodes only say it in the message.
        """
        message = self.message.lower()
        return self.code == 3 or "revert" in message or "insufficient funds" in message

    @property
    def is_too_large(self) -> bool:
        """Whether a smaller range of logs may be answered; every provider words it its own way."""
        return _TOO_LARGE.search(self.message) is not None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One URL of a chain, by its place in the list; its text form hides the URL."""

    index: int
    url: str = field(repr=False)
    client: httpx.AsyncClient = field(repr=False)
    limits: RpcLimits = field(repr=False)
    ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1), repr=False)

    @property
    def label(self) -> str:
        """The endpoint's number and host, which may be shown."""
        return f"rpc-{self.index} ({urlsplit(self.url).hostname or 'no host'})"

    async def ask(self, method: str, params: Sequence[object]) -> object:
        """The `result` of one call, of any shape.

        Raises:
            EndpointFailed: nothing usable came. RpcFault: it answered with a JSON-RPC error.
        """
        number = next(self.ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}
        try:
            async with asyncio.timeout(self.limits.call_seconds):
                status, raw = await self._post(json.dumps(request).encode())
        except (TimeoutError, httpx.TimeoutException):
            raise EndpointFailed("timed out") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EndpointFailed(type(error).__name__) from None
        return _result(status, raw, number)

    async def _post(self, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        parts = bytearray()
        async with self.client.stream("POST", self.url, content=body, headers=headers) as response:
            async for piece in response.aiter_bytes():
                parts += piece
                if len(parts) > self.limits.answer_bytes:
                    raise AnswerTooLarge(f"over {self.limits.answer_bytes} bytes")
            return response.status_code, bytes(parts)


def _result(status: int, raw: bytes, number: int) -> object:
    if status in _OWN_STATUS or status >= 500 or 300 <= status < 400:
        raise EndpointFailed(f"HTTP {status}")
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        kind = AnswerTooLarge if status == 413 else EndpointFailed
        raise kind(f"HTTP {status} without JSON-RPC")
    if answer.get("error") is not None:
        raise _fault(answer["error"])
    if status != 200:
        raise EndpointFailed(f"HTTP {status}")
    if answer.get("id") != number or "result" not in answer:
        raise EndpointFailed("the answer to another call")
    result: object = answer["result"]
    return result


def _fault(given: object) -> Exception:
    if not isinstance(given, dict):
        return EndpointFailed("a malformed error")
    code, message, more = given.get("code"), given.get("message"), given.get("data")
    if isinstance(more, dict):  # some wrap it once more
        more = more.get("data")
    try:
        found = data("data", more)
    except MalformedValue:
        found = None
    text = _URL.sub("(url)", message)[:_MESSAGE_LIMIT] if isinstance(message, str) else ""
    return RpcFault(code if isinstance(code, int) else 0, text, found)
