"""Thin routes for the hot path, with their contract beside them.

A FastAPI + pydantic route costs 136-155 us a request, this form 66-69 us (two shared cores). An
endpoint here is an object called with (scope, receive, send); it raises typed errors, which the
exception handlers of `problems` turn into responses like anywhere else.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

from app.kit.errors import BodyTooLarge, BodyTooSlow, MalformedJson, MalformedRequest, NotJson

JSON = "application/json"
BODY_SECONDS = 15
"""A client that sends its body more slowly only holds a connection."""
WHERE = re.compile(r"^(?P<reason>.*?)(?: - at `\$?\.?(?P<field>.*)`)?$", re.DOTALL)

Wire = TypeVar("Wire")


@dataclass(frozen=True, slots=True)
class Answer:
    """One documented response."""

    description: str
    model: type[BaseModel]
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class RawRoute:
    """A route and what the OpenAPI document says about it."""

    path: str
    method: str
    endpoint: ASGIApp
    operation_id: str
    summary: str
    tag: str
    request: type[BaseModel]
    answers: Mapping[int, Answer]
    refusals: tuple[int, ...]
    """Statuses that come back as a problem document."""
    parameters: tuple[Mapping[str, object], ...] = field(default=())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; like FastAPI's routes it leaves itself in the scope, for the log."""
        scope["route"] = self
        await self.endpoint(scope, receive, send)


class Strict(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A wire object that refuses fields it does not know."""


class Disconnected(Exception):
    """The client went away before its body was complete."""


async def read_json(
    scope: Scope, receive: Receive, *, decoder: msgspec.json.Decoder[Wire], limit_bytes: int
) -> Wire:
    """Return the decoded body.

    Raises:
        NotJson: another content type. BodyTooLarge: more than `limit_bytes`.
        BodyTooSlow: not complete in time. MalformedJson: not JSON.
        MalformedRequest: JSON of another shape.
        Disconnected: the client left.
    """
    if header(scope, b"content-type").partition(";")[0].strip().lower() != JSON:
        raise NotJson(f"content-type must be {JSON}")
    return decoded(await read_body(scope, receive, limit_bytes=limit_bytes), decoder)


def decoded(body: bytes, decoder: msgspec.json.Decoder[Wire]) -> Wire:
    """Return what the decoder makes of a body; see `read_json` for the errors."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        match = WHERE.match(str(error))
        assert match
        raise MalformedRequest(field=match["field"] or "", reason=match["reason"]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedJson(str(error)) from None
    except RecursionError:
        raise MalformedJson("nested too deeply") from None


async def read_body(scope: Scope, receive: Receive, *, limit_bytes: int) -> bytes:
    """Return the whole body, never holding much more than `limit_bytes` of it.

    Raises:
        BodyTooLarge: more than `limit_bytes`. BodyTooSlow: incomplete after `BODY_SECONDS`.
        Disconnected: the client left.
    """
    announced = header(scope, b"content-length")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit_bytes:
        raise BodyTooLarge(limit_bytes=limit_bytes)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _body(receive, limit_bytes=limit_bytes)
    except TimeoutError:
        raise BodyTooSlow(limit_seconds=BODY_SECONDS) from None


async def _body(receive: Receive, *, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit_bytes:
            raise BodyTooLarge(limit_bytes=limit_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def header(scope: Scope, name: bytes) -> str:
    """Return a request header's first value, or an empty string. The name is lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return ""


async def send_json(
    send: Send, body: bytes, *, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Send a complete JSON response."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", JSON.encode()),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
