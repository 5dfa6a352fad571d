"""`offpeak serve`: one gateway process."""

from app.cli.options import DEFAULT_HOME, Home

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
    from app.kit.server import LimitedHttp  # noqa: PLC0415
    from app.main import build_app  # noqa: PLC0415

    settings = read_settings(home)
    configure_logging(level=settings.log_level)
    # after a clean stop uvicorn raises the signal that asked for it once more; nobody needs it
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.run(
        build_app(settings),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=LimitedHttp,
        ws="websockets-sansio",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.drain_seconds,
        ws_per_message_deflate=False,
        ws_max_size=WEBSOCKET_MAX_BYTES,
        ws_ping_interval=None,  # the channel has heartbeats of its own
    )
