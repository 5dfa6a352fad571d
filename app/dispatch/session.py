"""One agent's live connection as the rest of dispatch sees it: what it is sent, when heard."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.dispatch.attempt import Attempt
from app.dispatch.session_repository import Offer
from supplier_agent.protocol import GatewayMessage, Heartbeat, Reason, Refused, encode

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

OUTGOING_LIMIT_CHARACTERS = 16 << 20
"""An agent that does not read is cut off here, not buffered for ever."""

POLICY_VIOLATION = 1008
INTERNAL_ERROR = 1011
GOING_AWAY = 1001
SERVICE_RESTART = 1012


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """Who is connected, under which epoch, with which device key."""

    agent_id: UUID
    epoch: int
    key: Ed25519PublicKey


@dataclass(slots=True)
class Stop:
    """Since when an agent is being told to stop a lease, and when it last was; monotonic."""

    first_at: float
    last_at: float


class AgentSession:
    """The sending half of one connection, and the attempts that run over it."""

    def __init__(self, identity: SessionIdentity, send: Send, *, now: float) -> None:
        self.agent_id = identity.agent_id
        self.epoch = identity.epoch
        self.key = identity.key
        self.heard_at = now
        self.streams: dict[int, Attempt] = {}
        """Running attempts by stream id."""
        self.offers: dict[UUID, Offer] = {}
        """What it offers, by deployment id."""
        self.stops: dict[UUID, Stop] = {}
        """Leases it was told to stop and has not ended."""
        self.reason = ""
        """Why it gets no work, as it was last told."""
        self._withheld = ""
        self._refused: dict[str, str] = {}
        self.ended = asyncio.Event()
        """Set when this side ends the connection."""
        self.abandoned = False
        """True where the leases stay with the agent: it has a newer session, or we go away."""
        self._send = send
        self._outgoing: deque[str] = deque()
        self._size = 0
        self._ready = asyncio.Event()
        self._close_code = GOING_AWAY
        self._beats = 0

    def send(self, message: GatewayMessage) -> None:
        """Send soon, in order; returns at once. What is sent after the end is dropped."""
        if self.ended.is_set():
            return
        frame = encode(message)
        self._size += len(frame)
        self._outgoing.append(frame)
        self._ready.set()
        if self._size > OUTGOING_LIMIT_CHARACTERS:
            self._outgoing.clear()
            self.end(POLICY_VIOLATION)

    def beat(self) -> None:
        """Send the next heartbeat."""
        self.send(Heartbeat(seq=self._beats))
        self._beats += 1

    def withhold(self, why: str) -> None:
        """Tell the agent why none of its deployments gets work; empty: they may."""
        self._withheld = why
        self._tell()

    def explain(self, deployment: str, why: str) -> None:
        """Tell the agent why one of its deployments is not offered; empty: it is."""
        self._refused[deployment] = why
        self._tell()

    def _tell(self) -> None:
        refused = next((why for why in self._refused.values() if why), "")
        reason = self._withheld or refused
        if reason != self.reason:
            self.reason = reason
            self.send(Reason(text=reason[:1024]))

    def refuse(self, code: str, detail: str = "") -> None:
        """Tell the agent why and end the connection."""
        self.send(Refused(code=code, detail=detail[:1024]))
        self.end(POLICY_VIOLATION)

    def end(self, close_code: int) -> None:
        """End the connection once what is queued has been written."""
        self._close_code = close_code
        self.ended.set()
        self._ready.set()

    async def write(self) -> None:
        """Write what is queued until the end, then close."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            while self._outgoing:
                frame = self._outgoing.popleft()
                self._size -= len(frame)
                await self._send({"type": "websocket.send", "text": frame})
            if self.ended.is_set():
                await self._send({"type": "websocket.close", "code": self._close_code})
                return
