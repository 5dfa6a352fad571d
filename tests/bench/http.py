"""A client that costs little: one keep-alive connection, one request at a time."""

import asyncio
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

END_OF_HEAD = b"\r\n\r\n"
END_OF_CHUNKS = b"0\r\n\r\n"
STATUS_AT = slice(9, 12)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status and body; a chunked body still has its chunk marks."""

    status: int
    body: bytes


class Connection:
    """One connection to a server on the loopback."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect."""
        parts = urlsplit(url)
        return cls(*await asyncio.open_connection(parts.hostname, parts.port, limit=2**22))

    async def post(self, path: str, body: bytes) -> HttpReply:
        """Return the whole reply."""
        head = (
            f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        received = (await self._reader.readuntil(END_OF_HEAD)).lower()
        _, announced, rest = received.partition(b"content-length: ")
        if announced:
            answer = await self._reader.readexactly(int(rest.partition(b"\r\n")[0]))
        else:
            answer = await self._reader.readuntil(END_OF_CHUNKS)
        return HttpReply(int(received[STATUS_AT]), answer)

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        await self._writer.wait_closed()
