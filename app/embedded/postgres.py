"""A Postgres server of our own: made, started, asked for databases, stopped.

Runs the packaged binaries or those of a system installation (Postgres 15 or newer), on TCP
127.0.0.1 only, with SCRAM passwords and data checksums.
"""

import secrets
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql

from app.embedded.account import Account, engine_account
from app.embedded.binaries import packaged_postgres, reachable_postgres
from app.embedded.errors import (
    BinaryMissing,
    DataVersionMismatch,
    ExitedEarly,
)
from app.embedded.homes import Home, open_home
from app.embedded.loopback import LOOPBACK
from app.embedded.server import (
    CLEAN_ENVIRONMENT,
    EmbeddedServer,
    Listening,
    start_listening,
)
from app.embedded.supervisor import ChildProcess, Command

_SUPERUSER = "postgres"
_INIT_SECONDS = 60.0
_PIDFILE_STATUS_LINE = 7
_MAX_CONNECTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """How to run a server.

    `home` is where data persists (None: temporary, gone with the server). `fsync` off is for tests
    only. `port` 0 takes a free one. `bin_directory` None means the packaged binaries.
    """

    home: Path | None = None
    bin_directory: Path | None = None
    fsync: bool = True
    port: int = 0
    start_seconds: float = 30.0


class EmbeddedPostgres(EmbeddedServer):
    """One running Postgres; `stop()` it, or use it as a context manager."""

    @classmethod
    def start(cls, options: PostgresOptions | None = None) -> Self:
        """Start a server and return once it accepts connections.

        Raises:
            BinaryMissing, ExecFailed, ExitedEarly, PortInUse, StartTimeout, HomeInUse,
            DataVersionMismatch
        """
        options = options or PostgresOptions()
        account = engine_account()
        home = open_home(
            options.home, account, engine="postgres", timeout_seconds=options.start_seconds
        )
        try:
            programs = _programs(options, account, home)
            launch = _Launch(options=options, account=account, home=home, programs=programs)
            password = launch.ensure_cluster()
            process, port = launch.serve()
        except BaseException:
            home.close()
            raise
        return cls(process=process, home=home, port=port, password=password)

    @property
    def url(self) -> str:
        """The superuser's URL, database `postgres`. Holds the password: never log it."""
        return self.database_url("postgres")

    @property
    def data_directory(self) -> Path:
        """Where the cluster's files are."""
        return self.home.path / "data"

    def database_url(self, name: str) -> str:
        """Return the superuser's URL of one database."""
        return f"postgresql://{_SUPERUSER}:{self._password}@{LOOPBACK}:{self.port}/{name}"

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, a copy of `template` if given (nobody may be connected to that one).

        Returns:
            The superuser's URL of the new database.
        """
        create_database(self.url, name, template=template)
        return self.database_url(name)


def create_database(server_url: str, name: str, *, template: str | None = None) -> None:
    """Create a database on the server that `server_url` names, by any role that may."""
    statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
    if template is not None:
        statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    options: PostgresOptions
    account: Account | None
    home: Home
    programs: Path

    def ensure_cluster(self) -> str:
        """Run initdb unless the home has a complete cluster.

        Returns:
            The superuser's password, made once and kept beside the data (0600).
        """
        secret = self.home.path / "password"
        written = self.home.path / "data" / "PG_VERSION"
        if secret.exists() and written.exists():
            self._check_version(written.read_text().strip())
            return secret.read_text()
        password = secrets.token_urlsafe(24)
        fresh = self._run_initdb(password)
        fresh.rename(self.home.path / "data")
        self.home.new_file(secret.name, None, password)
        return password

    def serve(self) -> tuple[ChildProcess, int]:
        """Return the ready server process and its port."""
        pidfile = self.home.path / "data" / "postmaster.pid"
        listening = Listening(
            command=self._postgres,
            ready=lambda process, _: _is_ready(pidfile, pid=process.pid),
            timeout_seconds=self.options.start_seconds,
        )
        return start_listening(listening, port=self.options.port)

    def _postgres(self, port: int) -> Command:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": port,
            "unix_socket_directories": "",
            "max_connections": _MAX_CONNECTIONS,
            "fsync": "on" if self.options.fsync else "off",
            "full_page_writes": "on" if self.options.fsync else "off",
            "logging_collector": "off",
        }
        arguments = (f"--{name}={value}" for name, value in settings.items())
        data = str(self.home.path / "data")
        return self._command("postgres", "-D", data, *arguments, log="postgres.log")

    def _run_initdb(self, password: str) -> Path:
        fresh = self.home.path / "unfinished"
        shutil.rmtree(fresh, ignore_errors=True)
        self.home.child(fresh.name, self.account)
        pwfile = self.home.new_file("pwfile", self.account, password)
        arguments = [
            f"--pgdata={fresh}",
            f"--username={_SUPERUSER}",
            f"--pwfile={pwfile}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--data-checksums",
        ]
        if not self.options.fsync:
            arguments.append("--no-sync")
        try:
            with ChildProcess.start(
                self._command("initdb", *arguments, log="initdb.log")
            ) as initdb:
                status = initdb.wait(_INIT_SECONDS)
        finally:
            pwfile.unlink()
        if status != 0:
            raise ExitedEarly("initdb", status=status, log_tail=initdb.log_tail())
        return fresh

    def _command(self, program: str, *arguments: str, log: str) -> Command:
        return Command(
            name=program,
            argv=(str(self.programs / program), *arguments),
            log=self.home.new_file(log, None),
            env=CLEAN_ENVIRONMENT,
            account=self.account,
            # Fast shutdown; then immediate, which still ends every backend; see postgres(1).
            stop_signals=(signal.SIGINT, signal.SIGQUIT),
            remove=self.home.path if self.home.temporary else None,
            held_fds=(self.home.lock_fd,),
        )

    def _check_version(self, written_by: str) -> None:
        answer = subprocess.run(
            [self.programs / "postgres", "--version"], capture_output=True, text=True, check=True
        )
        binaries = answer.stdout.split()[2].partition(".")[0]
        if binaries != written_by:
            raise DataVersionMismatch(self.home.path, written_by=written_by, binaries=binaries)


def _programs(options: PostgresOptions, account: Account | None, home: Home) -> Path:
    directory = options.bin_directory or packaged_postgres()
    for program in ("postgres", "initdb"):
        if not (directory / program).is_file():
            raise BinaryMissing(program, looked_in=str(directory))
    return reachable_postgres(directory, account, copies=home.path / "programs")


def _is_ready(pidfile: Path, *, pid: int) -> bool:
    """Whether the server with this pid says so in its pid file (line 8: "ready").

    Asking the file, not the port, cannot mistake another server for ours.
    """
    try:
        lines = pidfile.read_text().splitlines()
    except FileNotFoundError:
        return False
    if len(lines) <= _PIDFILE_STATUS_LINE or lines[0].strip() != str(pid):
        return False
    return lines[_PIDFILE_STATUS_LINE].strip() == "ready"
