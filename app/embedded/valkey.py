"""A Valkey server of our own, append-only file on."""

import secrets
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from app.embedded.account import Account, engine_account
from app.embedded.binaries import packaged_valkey, reachable_program
from app.embedded.errors import ExitedEarly, PortInUse
from app.embedded.homes import Home, open_home
from app.embedded.loopback import LOOPBACK, free_port
from app.embedded.supervisor import ChildProcess, Command

_PORT_TRIES = 10
_PROBE_SECONDS = 1.0
_ADDRESS_IN_USE = "Address already in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyOptions:
    """How to run a server: `home` None is temporary, `port` 0 takes a free one."""

    home: Path | None = None
    port: int = 0
    start_seconds: float = 15.0


class EmbeddedValkey:
    """One running server; `stop()` it, or use it as a context manager."""

    def __init__(self, *, process: ChildProcess, home: Home, port: int, password: str) -> None:
        self.process = process
        self.home = home
        self.port = port
        self._password = password
        self._stopped = False

    @classmethod
    def start(cls, options: ValkeyOptions | None = None) -> Self:
        """Start a server and return once it answers and has loaded its data.

        Raises:
            BinaryMissing, ExecFailed, ExitedEarly, PortInUse, StartTimeout, HomeInUse
        """
        options = options or ValkeyOptions()
        account = engine_account()
        home = open_home(
            options.home, account, engine="valkey", timeout_seconds=options.start_seconds
        )
        try:
            process, port, password = _serve(options, account, home)
        except BaseException:
            home.close()
            raise
        return cls(process=process, home=home, port=port, password=password)

    @property
    def url(self) -> str:
        """The server's URL, database 0. Holds the password: never log it."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}/0"

    def stop(self) -> None:
        """Write what is pending and end; harmless when repeated."""
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


def _serve(
    options: ValkeyOptions, account: Account | None, home: Home
) -> tuple[ChildProcess, int, str]:
    program = reachable_program(packaged_valkey(), account, copies=home.path / "programs")
    for _ in range(_PORT_TRIES - 1):
        try:
            return _serve_once(program, options, account, home)
        except PortInUse:
            if options.port:
                raise
    return _serve_once(program, options, account, home)


def _serve_once(
    program: Path, options: ValkeyOptions, account: Account | None, home: Home
) -> tuple[ChildProcess, int, str]:
    port = options.port or free_port()
    password = _password(home)
    configuration = _write_configuration(home, account, port=port, password=password)
    process = ChildProcess.start(
        Command(
            name="valkey",
            argv=(str(program), str(configuration)),
            log=home.new_file("valkey.log", None),
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            account=account,
            stop_signals=(signal.SIGTERM,),
            remove=home.path if home.temporary else None,
            held_fds=(home.lock_fd,),
        )
    )
    try:
        process.wait_ready(
            lambda: _is_ready(port, password=password, pid=process.pid),
            timeout_seconds=options.start_seconds,
        )
    except ExitedEarly as error:
        if _ADDRESS_IN_USE not in error.log_tail:
            raise
        raise PortInUse("valkey", status=error.status, log_tail=error.log_tail) from None
    except BaseException:
        process.stop()
        raise
    return process, port, password


def _password(home: Home) -> str:
    """Return the home's password, made once: whoever has the URL finds the server again."""
    secret = home.path / "password"
    if not secret.exists() or not secret.read_text():
        home.new_file(secret.name, None, secrets.token_urlsafe(24))
    return secret.read_text()


def _write_configuration(home: Home, account: Account | None, *, port: int, password: str) -> Path:
    """Write the configuration file (0600): a password in argv could be read by anybody."""
    lines = (
        f"bind {LOOPBACK}",
        f"port {port}",
        f'dir "{home.child("data", account)}"',
        f"requirepass {password}",
        "appendonly yes",
        "daemonize no",
        'save ""',
    )
    return home.new_file("valkey.conf", account, "\n".join(lines) + "\n")


def _is_ready(port: int, *, password: str, pid: int) -> bool:
    """Whether the process with this pid answers there and has loaded its append-only file.

    Two inline commands of the RESP protocol; INFO names the process, so that another server on
    the port is not taken for ours.
    """
    answer = b""
    with suppress(OSError), socket.create_connection((LOOPBACK, port), _PROBE_SECONDS) as link:
        link.sendall(f"AUTH {password}\r\nINFO\r\nQUIT\r\n".encode())
        while piece := link.recv(65_536):
            answer += piece
    fields = answer.split(b"\r\n")
    return f"process_id:{pid}".encode() in fields and b"loading:0" in fields
