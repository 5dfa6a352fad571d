"""The HTTP server of `offpeak serve`: told to stop, it first lets the application drain."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import uvicorn


class DrainingServer(uvicorn.Server):
    """Ends what runs before it ends connections.

    uvicorn's own order is the other way round: it closes every WebSocket first, and with them the
    channel on which running jobs would still be answered and settled.
    """

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        """Take the server's configuration and what is to be done before it stops.

        Meanwhile it goes on listening, so that a load balancer is told "not ready".
        """
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, unless a second SIGINT asks for haste; then stop as uvicorn does."""
        draining = asyncio.ensure_future(self._drain())
        while not draining.done() and not self.force_exit:
            await asyncio.wait({draining}, timeout=0.1)
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        await super().shutdown(sockets)
