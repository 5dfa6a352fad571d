"""A small gateway for the agent's tests: real WebSocket, real checks, no database."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, TypeVar

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from supplier_agent.protocol import (
    MAX_BEFORE_HELLO_BYTES,
    Accept,
    AgentMessage,
    AnswerAssembler,
    BadHello,
    Busy,
    Cancelled,
    Capacity,
    Challenge,
    Done,
    Fail,
    First,
    GatewayMessage,
    Hello,
    Refused,
    Welcome,
    check_hello,
    decode_data,
    decode_from_agent,
    encode,
    stream_of,
)

WAIT_SECONDS = 60.0
_M = TypeVar("_M", bound=AgentMessage)


async def eventually(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds; for what tells nobody when it changes."""
    for _ in range(int(WAIT_SECONDS * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition never held")


@dataclass(slots=True)
class GatewaySession:
    """One agent connection that proved its key, and all that it has sent."""

    hello: Hello
    connection: ServerConnection
    messages: list[AgentMessage] = field(default_factory=list)
    streams: dict[int, bytearray] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    closed: bool = False
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def send(self, message: GatewayMessage) -> None:
        await self.connection.send(encode(message))

    async def drop(self) -> None:
        """Cut the connection without a closing handshake."""
        self.connection.transport.abort()
        await self.until(lambda: self.closed)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that came makes `condition` true."""
        async with asyncio.timeout(WAIT_SECONDS), self._news:
            await self._news.wait_for(condition)

    async def expect(self, kind: type[_M], where: Callable[[_M], bool] = lambda _: True) -> _M:
        """The first message of this kind, perhaps one that has come already."""

        def found() -> _M | None:
            matches = (m for m in self.messages if isinstance(m, kind) and where(m))
            return next(matches, None)

        await self.until(lambda: found() is not None)
        message = found()
        assert message is not None
        return message

    async def ending(self, lease: str) -> Done | Fail | Cancelled | Busy:
        """How a lease ended."""

        def found() -> Done | Fail | Cancelled | Busy | None:
            kinds = (Done, Fail, Cancelled, Busy)
            matches = (m for m in self.messages if isinstance(m, kinds) and m.lease == lease)
            return next(matches, None)

        await self.until(lambda: found() is not None)
        message = found()
        assert message is not None
        return message

    async def accepted(self, lease: str) -> None:
        await self.expect(Accept, lambda m: m.lease == lease)

    async def started(self, lease: str) -> None:
        """Wait for FIRST and the stream's first bytes."""
        await self.expect(First, lambda m: m.lease == lease)
        await self.until(lambda: len(self.stream(lease)) > 0)

    async def offers(self, slots: int) -> Capacity:
        """Wait until the last CAPACITY offers this many slots."""

        def last() -> Capacity | None:
            return next((m for m in reversed(self.messages) if isinstance(m, Capacity)), None)

        def agrees() -> bool:
            found = last()
            return found is not None and found.offered == slots

        await self.until(agrees)
        capacity = last()
        assert capacity is not None
        return capacity

    def stream(self, lease: str) -> bytes:
        return bytes(self.streams.get(stream_of(lease), b""))

    def text(self, lease: str) -> str:
        """The text that a lease's stream has so far."""
        return AnswerAssembler(max_output_tokens=4096).feed(self.stream(lease))

    async def read(self) -> None:
        try:
            async for frame in self.connection:
                if isinstance(frame, bytes):
                    data = decode_data(frame)
                    self.order.append(data.stream)
                    assert data.seq == self.order.count(data.stream) - 1
                    self.streams.setdefault(data.stream, bytearray()).extend(data.payload)
                else:
                    self.messages.append(decode_from_agent(frame))
                await self._tell()
        except ConnectionClosed:
            pass
        finally:
            self.closed = True
            await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


class TestGateway:
    """Listens on loopback; each connection that proves `public_key` becomes a session."""

    __test__ = False

    def __init__(self, public_key: bytes) -> None:
        self.public_key = public_key
        self.welcome = Welcome(epoch=1, heartbeat_seconds=5.0, dead_seconds=25.0)
        self.sessions: asyncio.Queue[GatewaySession] = asyncio.Queue()
        self.refusals: asyncio.Queue[str] = asyncio.Queue()
        self.nonces: list[str] = []
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(self._handle, "127.0.0.1", 0, compression=None)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        port = next(iter(self._server.sockets)).getsockname()[1]
        return f"ws://127.0.0.1:{port}/v1/agents/connect"

    async def session(self) -> GatewaySession:
        """The next session that opens."""
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.sessions.get()

    async def _handle(self, connection: ServerConnection) -> None:
        nonce = secrets.token_bytes(32)
        self.nonces.append(nonce.hex())
        try:
            await connection.send(encode(Challenge(nonce=nonce.hex())))
            hello = decode_from_agent(
                await connection.recv(decode=False), limit=MAX_BEFORE_HELLO_BYTES
            )
        except ConnectionClosed:
            return
        assert isinstance(hello, Hello)
        try:
            check_hello(hello, nonce=nonce, public_key=self.public_key)
        except BadHello as error:
            await connection.send(encode(Refused(code=error.code)))
            self.refusals.put_nowait(error.code)
            return
        session = GatewaySession(hello, connection)
        await session.send(self.welcome)
        self.sessions.put_nowait(session)
        await session.read()
