"""A Valkey server of our own, append-only file on."""

import secrets
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from app.embedded.account import Account, engine_account
from app.embedded.binaries import packaged_valkey, reachable_program
from app.embedded.homes import Home, open_home
from app.embedded.loopback import LOOPBACK
from app.embedded.server import (
    CLEAN_ENVIRONMENT,
    EmbeddedServer,
    Listening,
    start_listening,
)
from app.embedded.supervisor import ChildProcess, Command

_PROBE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyOptions:
    """How to run a server: `home` None is temporary, `port` 0 takes a free one."""

    home: Path | None = None
    port: int = 0
    start_seconds: float = 15.0


class EmbeddedValkey(EmbeddedServer):
    """One running Valkey; `stop()` it, or use it as a context manager."""

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


def _serve(
    options: ValkeyOptions, account: Account | None, home: Home
) -> tuple[ChildProcess, int, str]:
    program = reachable_program(packaged_valkey(), account, copies=home.path / "programs")
    password = _password(home)

    def command(port: int) -> Command:
        configuration = _write_configuration(home, account, port=port, password=password)
        return Command(
            name="valkey",
            argv=(str(program), str(configuration)),
            log=home.new_file("valkey.log", None),
            env=CLEAN_ENVIRONMENT,
            account=account,
            stop_signals=(signal.SIGTERM,),
            remove=home.path if home.temporary else None,
            held_fds=(home.lock_fd,),
        )

    listening = Listening(
        command=command,
        ready=lambda process, port: _is_ready(port, password=password, pid=process.pid),
        timeout_seconds=options.start_seconds,
    )
    return *start_listening(listening, port=options.port), password


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
