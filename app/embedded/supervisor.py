"""Child processes that end when we do, however we end.

Used for the engines and for the gateway, worker and agent of `offpeak up` and `offpeak demo`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from app.embedded import guard
from app.embedded.account import Account
from app.embedded.errors import ExecFailed, ExitedEarly, StartTimeout

_TAIL_BYTES = 4_096
_PROBE_SECONDS = 0.02
_KILL_MARGIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run and how to stop it.

    `stop_signals` are sent in turn, each with `grace_seconds` to obey, then the process group is
    killed. `env` replaces the environment (None: inherited). `account` is the one to drop to.
    `remove` names a directory that goes when the process is stopped, not when it ends by itself.
    `held_fds` stay open, in the guard only, until the process is gone: a lock on them outlives us
    exactly as long as the process does.
    """

    name: str
    argv: tuple[str, ...]
    log: Path
    cwd: Path = Path("/")
    env: Mapping[str, str] | None = None
    account: Account | None = None
    stop_signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)
    grace_seconds: float = 10.0
    remove: Path | None = None
    held_fds: tuple[int, ...] = ()


class ChildProcess:
    """One running command, its guard, and the lifeline between the guard and us."""

    def __init__(
        self, command: Command, *, pid: int, guard_process: "subprocess.Popen[bytes]", lifeline: int
    ) -> None:
        self.command = command
        self.pid = pid
        self._guard = guard_process
        self._lifeline: int | None = lifeline
        self._closing = threading.Lock()

    @classmethod
    def start(cls, command: Command) -> Self:
        """Start the command; its output is appended to `command.log`.

        Raises:
            ExecFailed: the program is missing, not executable, or its directory is closed to us.
        """
        lifeline_read, lifeline_write = os.pipe()
        try:
            guard_process, answer = _start_guard(command, lifeline_fd=lifeline_read)
        except BaseException:
            os.close(lifeline_write)
            raise
        finally:
            os.close(lifeline_read)
        if isinstance(answer, str):
            os.close(lifeline_write)
            guard_process.wait()
            raise ExecFailed(command.name, reason=answer)
        return cls(command, pid=answer, guard_process=guard_process, lifeline=lifeline_write)

    def status(self) -> int | None:
        """Return the exit status (128 + n for signal n), None while it runs."""
        status = self._guard.poll()
        return None if status is None else _as_shell(status)

    def wait(self, timeout_seconds: float) -> int:
        """Wait for the command to end by itself.

        Raises:
            StartTimeout: it still ran at the end of the time; it has been stopped.
        """
        try:
            self._guard.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self._give_up(timeout_seconds)
        return self.stop()

    def wait_ready(self, probe: Callable[[], bool], *, timeout_seconds: float) -> None:
        """Return once `probe` says yes.

        Raises:
            ExitedEarly: the command ended first.
            StartTimeout: time ran out first; the command has been stopped.
        """
        end = time.monotonic() + timeout_seconds
        while not probe():
            if self.status() is not None:
                status = self.stop()
                raise ExitedEarly(self.command.name, status=status, log_tail=self.log_tail())
            if time.monotonic() >= end:
                self._give_up(timeout_seconds)
            time.sleep(_PROBE_SECONDS)

    def log_tail(self) -> str:
        """Return the last 4 KiB of the log."""
        try:
            with self.command.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def signal(self, number: signal.Signals) -> None:
        """Send one signal to the command itself, when it still runs."""
        if self.status() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def stop(self) -> int:
        """Stop the command and everything it started; harmless when repeated.

        Returns:
            The exit status, 128 + n for signal n.
        """
        with self._closing:
            if self._lifeline is not None:
                os.close(self._lifeline)
                self._lifeline = None
        patience = self.command.grace_seconds * len(self.command.stop_signals)
        try:
            return _as_shell(self._guard.wait(patience + _KILL_MARGIN_SECONDS))
        except subprocess.TimeoutExpired:
            self._guard.kill()
            return _as_shell(self._guard.wait())

    def _give_up(self, timeout_seconds: float) -> NoReturn:
        tail = self.log_tail()
        self.stop()
        raise StartTimeout(self.command.name, timeout_seconds=timeout_seconds, log_tail=tail)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _as_shell(status: int) -> int:
    return status if status >= 0 else 128 - status


def _start_guard(
    command: Command, *, lifeline_fd: int
) -> tuple["subprocess.Popen[bytes]", int | str]:
    """Start a guard.

    Returns:
        The guard, and the pid of the command or why there is none.
    """
    report_read, report_write = os.pipe()
    spec: guard.Spec = {
        "argv": list(command.argv),
        "cwd": str(command.cwd),
        "uid": command.account.uid if command.account else None,
        "gid": command.account.gid if command.account else None,
        "stop_signals": [int(number) for number in command.stop_signals],
        "grace_seconds": command.grace_seconds,
        "remove": str(command.remove) if command.remove else None,
        "lifeline_fd": lifeline_fd,
        "report_fd": report_write,
        "parent_pid": os.getpid(),
    }
    with os.fdopen(report_read, "rb") as report, command.log.open("ab") as log:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, json.dumps(spec)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=command.env,
                pass_fds=(lifeline_fd, report_write, *command.held_fds),
                start_new_session=True,
            )
        finally:
            os.close(report_write)
        line = report.readline()
    answer: guard.Report = json.loads(line) if line else {"error": "its guard ended"}
    return process, answer["pid"] if "pid" in answer else answer["error"]
