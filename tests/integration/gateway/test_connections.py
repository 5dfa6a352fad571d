"""One stranger's connection cannot grow without end, nor stay for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from app.kit import server as limits
from app.kit.raw_routes import send_json
from app.kit.server import MAX_HEAD_BYTES, LimitedHttp

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

GET = b"GET / HTTP/1.1\r\nhost: gateway\r\n"


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    await send_json(send, b"{}")


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    server = uvicorn.Server(
        uvicorn.Config(answer, port=0, http=LimitedHttp, lifespan="off", log_config=None)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  # uvicorn tells it by nothing else
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    yield reader, writer
    writer.transport.abort()
    server.should_exit = True
    await serving


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (GET, b"x-one: " + b"a" * 1_000 + b"\r\n"),
        (GET + b"x-one: ", b"a" * 1_000),
        (b"GET /", b"a"),
    ],
    ids=["many headers", "one header", "path"],
)
async def test_a_head_without_end_is_cut_off(
    connection: Connection, beginning: bytes, more: bytes
) -> None:
    """60 MB of headers were taken, and each of them kept."""
    reader, writer = connection
    writer.write(beginning)
    with suppress(ConnectionError):
        for _ in range(64):
            writer.write(more * (MAX_HEAD_BYTES // len(more)))
            await writer.drain()
    with suppress(ConnectionError):
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
    assert reader.at_eof() or reader.exception()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HT",
        b"POST / HTTP/1.1\r\nhost: gateway\r\ncontent-length: 100\r\n\r\n{",
        GET + b"\r\nGET / HT",
    ],
    ids=["nothing", "half a head", "half a body", "half of a second request"],
)
async def test_a_request_that_does_not_become_complete_ends_its_connection(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.1)
    reader, writer = await asyncio.open_connection(*connection[1].get_extra_info("peername"))
    writer.write(said)
    with suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 20)
    assert reader.at_eof() or reader.exception()
    writer.transport.abort()


async def test_a_complete_request_is_answered_and_its_connection_kept(
    connection: Connection,
) -> None:
    reader, writer = connection
    for _ in range(3):
        writer.write(GET + b"content-length: 2\r\n\r\n{}")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(2) == b"{}"
