"""The agents' socket, `/v1/agents/connect`: one raw ASGI WebSocket endpoint."""

import asyncio
import contextlib
import os

import structlog
from starlette.types import Message, Receive, Scope, Send

from app.dispatch.channel import Channel
from app.dispatch.errors import SessionRefused
from app.dispatch.handshake import Handshake
from app.dispatch.outcomes import Outcomes
from app.dispatch.session import INTERNAL_ERROR, POLICY_VIOLATION, SERVICE_RESTART, AgentSession
from app.kit.ids import IdSource
from supplier_agent.protocol import (
    MAX_BEFORE_HELLO_BYTES,
    MAX_CONTROL_BYTES,
    NONCE_BYTES,
    BadFrame,
    Challenge,
    Hello,
    Refused,
    decode_from_agent,
    encode,
)

PATH = "/v1/agents/connect"
HELLO_SECONDS = 10.0
CLOSE_SECONDS = 1.0
MAX_GREETING = 256
"""Connections that have not said who they are; more are told to come back."""
TRY_AGAIN_LATER = 1013

WEBSOCKET_MAX_BYTES = MAX_CONTROL_BYTES
"""Largest message the server may assemble (uvicorn's `ws_max_size`); compression is off."""

log = structlog.get_logger()


class AgentEndpoint:
    """Serves agents' connections; a mistake ends that connection only, with a reason."""

    def __init__(self, outcomes: Outcomes, ids: IdSource) -> None:
        self._outcomes = outcomes
        self._dispatcher = outcomes.dispatcher
        self._handshake = Handshake(outcomes)
        self._channel = Channel(outcomes, ids)
        self._greeting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection from its opening to its end."""
        assert scope["type"] == "websocket"
        if (await receive())["type"] != "websocket.connect":
            return
        await send({"type": "websocket.accept"})
        if self._greeting >= MAX_GREETING:
            await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})
            return
        if self._dispatcher.draining or self._dispatcher.closing:
            await send({"type": "websocket.close", "code": SERVICE_RESTART})
            return
        self._greeting += 1
        try:
            session = await self._open(receive, send)
        except SessionRefused as error:
            self._outcomes.metrics.sessions_ended.labels(error.reason).inc()
            await send_refusal(send, error)
            return
        except Exception:
            log.exception("no session opened")
            await send({"type": "websocket.close", "code": INTERNAL_ERROR})
            return
        finally:
            self._greeting -= 1
        if session is not None:
            await self._serve(session, receive)

    async def _open(self, receive: Receive, send: Send) -> AgentSession | None:
        """Return the welcomed session, None when the agent left first.

        Raises:
            SessionRefused: no proper hello in time.
        """
        nonce = os.urandom(NONCE_BYTES)
        await send({"type": "websocket.send", "text": encode(Challenge(nonce=nonce.hex()))})
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                event = await receive()
        except TimeoutError:
            raise SessionRefused("bad-frame", "no hello in time") from None
        if event["type"] == "websocket.disconnect":
            return None
        hello = first_message(event)
        return await self._handshake.open(hello, nonce=nonce, send=send)

    async def _serve(self, session: AgentSession, receive: Receive) -> None:
        """Read and write until either side ends the connection, then part with its leases."""
        writer = asyncio.create_task(session.write())
        reader = asyncio.create_task(self._read(session, receive))
        code = "closed"
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            error = reader.exception() if reader.done() else None
            if isinstance(error, SessionRefused):
                code = error.reason
                session.refuse(error.reason, error.detail)
                await asyncio.wait({writer}, timeout=CLOSE_SECONDS)
            elif error is not None:
                code = "internal"
                log.error("agent session broke", exc_info=error)
        finally:
            session.end(POLICY_VIOLATION)
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
            self._outcomes.metrics.sessions_ended.labels(code).inc()
            log.info("agent session ended", agent=str(session.agent_id), code=code)
            self._dispatcher.spawn(self._outcomes.lost(session))

    async def _read(self, session: AgentSession, receive: Receive) -> None:
        """Take frames until the agent leaves.

        Raises:
            SessionRefused: it said something it may not say.
        """
        try:
            while True:
                event = await receive()
                if event["type"] == "websocket.disconnect":
                    # The server says so when it stops, before the application hears of it.
                    session.abandoned |= event.get("code") == SERVICE_RESTART
                    return
                frame = event.get("bytes")
                if frame is not None:
                    self._channel.on_frame(session, frame)
                else:
                    message = decode_from_agent(event["text"])
                    await self._channel.on_message(session, message)
        except BadFrame as error:
            raise SessionRefused("bad-frame", str(error)) from error


def first_message(event: Message) -> Hello:
    """Return the hello that a connection begins with.

    Raises:
        SessionRefused: it begins with anything else.
    """
    text = event.get("text")
    if text is None:
        raise SessionRefused("bad-frame", "a hello comes first, as text")
    try:
        message = decode_from_agent(text, limit=MAX_BEFORE_HELLO_BYTES)
    except BadFrame as error:
        raise SessionRefused("bad-frame", str(error)) from None
    if not isinstance(message, Hello):
        raise SessionRefused("bad-frame", "a hello comes first")
    return message


async def send_refusal(send: Send, refused: SessionRefused) -> None:
    """Tell a connection that is not yet a session why it ends."""
    frame = encode(Refused(code=refused.reason, detail=refused.detail[:1024]))
    with contextlib.suppress(OSError, RuntimeError):  # it may have gone already
        await send({"type": "websocket.send", "text": frame})
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
