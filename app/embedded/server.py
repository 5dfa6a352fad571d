"""What the database servers have in common: one process with a home, a port and a password."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from app.embedded.errors import ExitedEarly, PortInUse
from app.embedded.homes import Home
from app.embedded.loopback import free_port
from app.embedded.supervisor import ChildProcess, Command

CLEAN_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}

_PORT_TRIES = 10
_ADDRESS_IN_USE = "Address already in use"


class EmbeddedServer:
    """One running server; `stop()` it, or use it as a context manager."""

    def __init__(self, *, process: ChildProcess, home: Home, port: int, password: str) -> None:
        self.process = process
        self.home = home
        self.port = port
        self._password = password
        self._stopped = False

    def stop(self) -> None:
        """Write what is pending and end, at worst by force; harmless when repeated."""
        if not self._stopped:
            self._stopped = True
            self.process.stop()
            self.home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """How to start a server on a port: its command, and whether it is ready to serve there."""

    command: Callable[[int], Command]
    ready: Callable[[ChildProcess, int], bool]
    timeout_seconds: float


def start_listening(listening: Listening, *, port: int) -> tuple[ChildProcess, int]:
    """Start a server on `port`; for 0 on a free one, and another when somebody was quicker.

    Returns:
        The ready process and its port.

    Raises:
        ExecFailed, ExitedEarly, PortInUse, StartTimeout
    """
    for _ in range(_PORT_TRIES - 1):
        try:
            return _start_once(listening, port or free_port())
        except PortInUse:
            if port:
                raise
    return _start_once(listening, port or free_port())


def _start_once(listening: Listening, port: int) -> tuple[ChildProcess, int]:
    command = listening.command(port)
    process = ChildProcess.start(command)
    try:
        process.wait_ready(
            lambda: listening.ready(process, port), timeout_seconds=listening.timeout_seconds
        )
    except ExitedEarly as error:
        if _ADDRESS_IN_USE not in error.log_tail:
            raise
        raise PortInUse(command.name, status=error.status, log_tail=error.log_tail) from None
    except BaseException:
        process.stop()
        raise
    return process, port
