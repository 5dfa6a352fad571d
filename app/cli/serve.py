"""`offpeak serve`: one gateway process."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from app.cli.options import DEFAULT_HOME, Home

if TYPE_CHECKING:
    from types import FrameType

    import uvicorn

    from app.assembly import Gateway

EXAMPLE = "Example: OFFPEAK_DATABASE_URL=... OFFPEAK_REDIS_URL=... offpeak serve"
KEEP_ALIVE_SECONDS = 75


def serve(*, home: Home = DEFAULT_HOME) -> None:
    """Run one gateway process until SIGTERM.

    Then it takes nothing new, ends what runs, and stops with status 0.
    """
    import signal  # noqa: PLC0415  # --help does without

    import uvicorn  # noqa: PLC0415

    from app.cli.server import read_settings  # noqa: PLC0415
    from app.dispatch.endpoints import WEBSOCKET_MAX_BYTES  # noqa: PLC0415
    from app.kit.log import configure_logging  # noqa: PLC0415
    from app.main import build_app  # noqa: PLC0415

    settings = read_settings(home)
    configure_logging(level=settings.log_level)
    # after a clean stop uvicorn raises the signal that asked for it once more; nobody needs it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    app = build_app(settings)
    gateway: Gateway = app.state.gateway
    # half of the time for what runs, half for the answers that still wait
    half_seconds = max(settings.drain_seconds // 2, 1)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=half_seconds,
        ws_per_message_deflate=False,
        ws_max_size=WEBSOCKET_MAX_BYTES,
        ws_ping_interval=None,  # the channel has heartbeats of its own
    )
    draining_server(config, lambda: gateway.drain(timeout_seconds=half_seconds)).run()


def draining_server(
    config: "uvicorn.Config", drain: Callable[[], Coroutine[object, object, None]]
) -> "uvicorn.Server":
    """Return a server that, asked to stop, drains before it closes anything; asked again, at once.

    uvicorn's own stop begins with closing the agents' sockets, and then waits for the answers that
    only these agents could bring.
    """
    import asyncio  # noqa: PLC0415

    import uvicorn  # noqa: PLC0415

    class DrainingServer(uvicorn.Server):
        """See `draining_server`."""

        draining: asyncio.Task[None] | None = None
        asked = False

        def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
            """Begin to drain at the first signal."""
            if self.asked or not self.started:
                super().handle_exit(sig, frame)
            self.asked = True

        async def on_tick(self, counter: int) -> bool:
            """Stop once the drain is over; uvicorn calls this ten times a second."""
            if self.asked and self.draining is None:
                self.draining = asyncio.create_task(drain())
            if self.draining is not None and self.draining.done():
                self.should_exit = True
            return await super().on_tick(counter)

    return DrainingServer(config)
