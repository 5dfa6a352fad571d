"""`offpeak serve`: one gateway process."""

from app.cli.options import DEFAULT_HOME, Home

EXAMPLE = "Example: OFFPEAK_DATABASE_URL=... OFFPEAK_REDIS_URL=... offpeak serve"
KEEP_ALIVE_SECONDS = 75
CLOSE_SECONDS = 5
"""After the drain, for responses that are still being written."""


def serve(*, home: Home = DEFAULT_HOME) -> None:
    """Run one gateway process until SIGTERM.

    Then it is not ready and takes nothing new, answers who waits with 202, gives what runs the
    drain time to settle, lets its agents go elsewhere, and stops with status 0. It does not serve
    while the chain contradicts the settings.
    """
    import signal  # noqa: PLC0415  # --help does without

    import uvicorn  # noqa: PLC0415

    from app.cli.draining import DrainingServer  # noqa: PLC0415
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
    app = build_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=LimitedHttp,
        ws="websockets-sansio",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
        ws_per_message_deflate=False,
        ws_max_size=WEBSOCKET_MAX_BYTES,
        ws_ping_interval=None,  # the channel has heartbeats of its own
    )
    guard = app.state.gateway.chain_guard
    try:
        DrainingServer(config, app.state.gateway.drain).run()
    finally:  # uvicorn exits when the start fails, and does not say why
        if guard is not None and guard.refusal is not None:
            raise guard.refusal
