"""uvicorn's HTTP protocol with the two limits it lacks: how long a head may be, and how late.

Without them one connection's headers grow until memory ends, and a client that says nothing keeps
its socket for ever.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MAX_HEAD_BYTES = 65_536
"""Request line and headers together."""
REQUEST_SECONDS = 30.0
"""From connecting, or the first byte after a response, to the end of the request's body."""


class LimitedHttp(HttpToolsProtocol):
    """Answers 431 to a long head; closes a connection whose request does not become complete."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = True
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the clock."""
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head before the parser keeps it."""
        if self._in_head:
            self._expect_request()
            self._head_bytes += len(data)
        before = self._head_bytes
        super().data_received(data)
        if self._in_head and before > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(
                STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._request_complete()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Stop the clock: the endpoint has one of its own."""
        self._request_complete()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head has ended; its body has limits of its own."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The whole request is here; what follows belongs to the next one."""
        self._request_complete()
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def _expect_request(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(REQUEST_SECONDS, self._is_late)

    def _request_complete(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _is_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
