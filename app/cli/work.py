"""`offpeak work`: one worker process with the background loops."""

import asyncio
import signal
from typing import TYPE_CHECKING

from app.cli.options import DEFAULT_HOME, Home

if TYPE_CHECKING:
    from app.config import Settings

EXAMPLE = "Example: OFFPEAK_DATABASE_URL=... offpeak work"


def work(*, home: Home = DEFAULT_HOME) -> None:
    """Run one worker process until SIGTERM.

    Several may run at once; each piece of their work is safe to do twice.
    """
    import uvloop  # noqa: PLC0415  # --help does without

    from app.cli.server import read_settings  # noqa: PLC0415
    from app.kit.log import configure_logging  # noqa: PLC0415

    settings = read_settings(home)
    configure_logging(level=settings.log_level)
    uvloop.run(run_worker(settings))


async def run_worker(settings: "Settings") -> None:
    """Run the worker until a signal asks it to stop."""
    from app.worker import build_worker  # noqa: PLC0415

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await build_worker(settings).run(stop)
