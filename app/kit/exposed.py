"""Metrics of a process that serves nothing else, on a port of their own."""

from dataclasses import dataclass, field
from threading import Thread
from types import TracebackType
from typing import Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server


@dataclass(slots=True)
class Exposed:
    """Serves a registry while entered; port 0 serves nothing."""

    registry: CollectorRegistry
    host: str
    port: int
    _running: tuple[WSGIServer, Thread] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Start to listen; OSError when the port is taken."""
        if self.port:
            self._running = start_http_server(self.port, addr=self.host, registry=self.registry)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._running is not None:
            server, thread = self._running
            server.shutdown()
            server.server_close()
            thread.join()
