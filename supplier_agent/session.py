"""One connection to a gateway, from its challenge to its end."""

import asyncio
import socket
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Final

import structlog
from websockets.asyncio.client import ClientConnection, connect

from supplier_agent.errors import AgentError
from supplier_agent.identity import DeviceKey
from supplier_agent.outbox import Outbox
from supplier_agent.protocol import (
    MAX_BEFORE_HELLO_BYTES,
    MAX_CONTROL_BYTES,
    PROTOCOL_VERSION,
    BadFrame,
    Cancel,
    Capacity,
    Challenge,
    GatewayMessage,
    Heartbeat,
    Hello,
    Reason,
    Refused,
    Run,
    Settled,
    Welcome,
    decode_from_gateway,
    encode,
    hello_bytes,
)
from supplier_agent.workbench import Workbench

OPEN_SECONDS: Final = 10.0
"""For the dial, and for each of the gateway's two words before WELCOME."""
_CLOSE_SECONDS: Final = 2.0
_CAPACITY_SECONDS: Final = 60.0
"""CAPACITY is said again this often, so that `offer_until` never runs out."""

_log = structlog.get_logger("offpeak.session")


class SessionRefused(AgentError):
    """The gateway ended the session with a reason of its own."""

    code = "session-refused"

    def __init__(self, refused: Refused) -> None:
        super().__init__(f"{refused.code}: {refused.detail}" if refused.detail else refused.code)
        self.refused = refused


class GatewaySilent(AgentError):
    """Nothing came from the gateway for as long as it said means death."""

    code = "gateway-silent"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no frame for {seconds:.0f} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Caller:
    """Who dials. `boot_id` is one start of the agent."""

    url: str
    agent_id: str
    key: DeviceKey
    host: str = field(default_factory=socket.gethostname)
    boot_id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(slots=True)
class Session:
    """One session's parts. `authenticated` once the gateway said WELCOME."""

    caller: Caller
    bench: Workbench
    capacity: Callable[[], Capacity]
    authenticated: bool = False
    outbox: Outbox = field(default_factory=Outbox)
    _connection: ClientConnection | None = None
    _last_capacity: Capacity | None = None

    async def hold(self) -> None:
        """Dial, prove the key and serve until the connection ends.

        Raises:
            SessionRefused, GatewaySilent, BadFrame: see there.
            OSError, TimeoutError, WebSocketException: it never opened, or broke.
        """
        async with connect(
            self.caller.url,
            compression=None,
            max_size=MAX_CONTROL_BYTES,
            ping_interval=None,  # our own heartbeats carry liveness
            open_timeout=OPEN_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            user_agent_header=None,
        ) as connection:
            self._connection = connection
            _no_delay(connection)
            welcome = await self._open(connection)
            self.authenticated = True
            _log.info("session open", epoch=welcome.epoch)
            self.bench.attach(self.outbox)
            try:
                await self._serve(connection, welcome)
            finally:
                self.bench.detach()

    def offer(self) -> None:
        """Say what is on offer, if it has changed."""
        if self.authenticated and self.capacity() != self._last_capacity:
            self._send_capacity()

    async def end(self) -> None:
        """Send what is queued and close."""
        if self._connection is not None and self.authenticated:
            await self.outbox.emptied()
            await self._connection.close()

    async def _open(self, connection: ClientConnection) -> Welcome:
        async with asyncio.timeout(OPEN_SECONDS):
            challenge = await _receive(connection, limit=MAX_BEFORE_HELLO_BYTES)
        if not isinstance(challenge, Challenge):
            raise BadFrame(f"{type(challenge).__name__} instead of a challenge")
        await connection.send(encode(self._hello(bytes.fromhex(challenge.nonce))))
        async with asyncio.timeout(OPEN_SECONDS):
            answer = await _receive(connection, limit=MAX_BEFORE_HELLO_BYTES)
        match answer:
            case Welcome():
                return answer
            case Refused():
                raise SessionRefused(answer)
            case _:
                raise BadFrame(f"{type(answer).__name__} instead of a welcome")

    def _hello(self, nonce: bytes) -> Hello:
        session = str(uuid.uuid4())
        signed = hello_bytes(
            nonce=nonce,
            session=session,
            version=PROTOCOL_VERSION,
            agent_id=self.caller.agent_id,
            host=self.caller.host,
        )
        return Hello(
            version=PROTOCOL_VERSION,
            agent_id=self.caller.agent_id,
            session=session,
            host=self.caller.host,
            boot_id=self.caller.boot_id,
            signature=self.caller.key.sign(signed).hex(),
            held_leases=self.bench.held,
        )

    async def _serve(self, connection: ClientConnection, welcome: Welcome) -> None:
        """Read, write and beat until one of them ends; the first end is the session's."""
        self._send_capacity()
        parts: tuple[Coroutine[object, object, None], ...] = (
            self._read(connection, dead_seconds=welcome.dead_seconds),
            self._write(connection),
            self._beat(welcome.heartbeat_seconds),
            self._repeat_capacity(),
        )
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _read(self, connection: ClientConnection, *, dead_seconds: float) -> None:
        while True:
            try:
                async with asyncio.timeout(dead_seconds):
                    message = await _receive(connection, limit=MAX_CONTROL_BYTES)
            except TimeoutError:
                raise GatewaySilent(dead_seconds) from None
            self._take(message)

    def _take(self, message: GatewayMessage) -> None:
        match message:
            case Run():
                self.bench.run(message)
            case Cancel(lease=lease):
                self.bench.cancel(lease)
            case Settled(lease=lease, outcome=outcome):
                if outcome == "refused":
                    _log.warning("result refused", lease=lease)
                self.bench.settle(lease)
            case Reason(text=text):
                _log.info("no work now" if text else "work may come", reason=text)
            case Refused():
                raise SessionRefused(message)
            case Heartbeat():
                pass
            case Challenge() | Welcome():
                raise BadFrame(f"{type(message).__name__} in an open session")

    async def _write(self, connection: ClientConnection) -> None:
        while True:
            await connection.send(await self.outbox.take())

    async def _beat(self, seconds: float) -> None:
        seq = 0
        while True:
            self.outbox.send(Heartbeat(seq=seq))
            seq += 1
            await asyncio.sleep(seconds)

    async def _repeat_capacity(self) -> None:
        while True:
            await asyncio.sleep(_CAPACITY_SECONDS)
            self._send_capacity()

    def _send_capacity(self) -> None:
        self._last_capacity = self.capacity()
        self.outbox.send(self._last_capacity)


async def _receive(connection: ClientConnection, *, limit: int) -> GatewayMessage:
    """The next control frame; a gateway sends no binary ones."""
    frame = await connection.recv(decode=False)
    return decode_from_gateway(frame, limit=limit)


def _no_delay(connection: ClientConnection) -> None:
    """A token frame must not wait 40 ms for the last one's acknowledgement."""
    raw = connection.transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
