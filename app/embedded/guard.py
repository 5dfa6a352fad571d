"""A small process between us and a child: whatever happens to us, the child goes.

Run as a script (`python -I -S guard.py SPEC`) with the standard library only, never imported by
the application. It holds the reading end of a pipe, the lifeline, whose writing end only our
process has. The pipe ends when we close it (a normal stop) or when the kernel does so for us
(SIGKILL included); either way the guard asks the child to stop, then kills it, and reaps every
descendant, also those that changed their process group.

Why not PR_SET_PDEATHSIG on the child alone (prctl(2)): it fires when the *thread* that forked ends,
and a change of credentials clears it. The guard has one thread and sets it after the privileges
are dropped, so it covers the one case the pipe cannot: the guard itself being killed.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TypedDict

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 1.0
_REAP_ROUNDS = 200


class Spec(TypedDict):
    """What the supervisor asks for; travels as JSON in argv."""

    argv: list[str]
    cwd: str
    uid: int | None
    gid: int | None
    stop_signals: list[int]
    grace_seconds: float
    remove: str | None
    lifeline_fd: int
    report_fd: int
    parent_pid: int


class Report(TypedDict, total=False):
    """The guard's one line of answer: the child's pid, or why there is no child."""

    pid: int
    error: str


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _spawn(spec: Spec) -> "subprocess.Popen[bytes]":
    guard_pid = os.getpid()
    death_signal = spec["stop_signals"][0]

    def tie_to_guard() -> None:
        _prctl(_PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != guard_pid:
            os._exit(1)

    dropped = spec["uid"] is not None
    return subprocess.Popen(
        spec["argv"],
        cwd=spec["cwd"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=tie_to_guard,  # noqa: PLW1509  # this process has one thread
        user=spec["uid"],
        group=spec["gid"],
        extra_groups=[] if dropped else None,
    )


def _report(fd: int, message: Report) -> None:
    os.write(fd, json.dumps(message).encode() + b"\n")
    os.close(fd)


def _wait_for_a_reason(child: "subprocess.Popen[bytes]", spec: Spec, wake_fd: int) -> None:
    """Return when the child has ended (poll() is not None) or when it has to end (None)."""
    watched = select.poll()  # select() takes no descriptor above 1023, and a busy parent has many
    for fd in (spec["lifeline_fd"], wake_fd):
        watched.register(fd, select.POLLIN)
    while child.poll() is None and os.getppid() == spec["parent_pid"]:
        ready = {fd for fd, _ in watched.poll(_POLL_SECONDS * 1_000)}
        if wake_fd in ready and any(n != signal.SIGCHLD for n in os.read(wake_fd, 64)):
            return  # asked to end by SIGTERM or SIGINT
        if spec["lifeline_fd"] in ready:
            return


def _end(child: "subprocess.Popen[bytes]", spec: Spec) -> int:
    for number in spec["stop_signals"]:
        if child.poll() is not None:
            break
        child.send_signal(number)
        try:
            child.wait(spec["grace_seconds"])
        except subprocess.TimeoutExpired:
            continue
    if child.poll() is None:
        _kill_group(child.pid)
    status = child.wait()
    _kill_group(child.pid)
    _reap_descendants()
    return status


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _reap_descendants() -> None:
    """Kill and collect what the child left behind; orphans come to us (PR_SET_CHILD_SUBREAPER)."""
    for _ in range(_REAP_ROUNDS):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _own_children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)


def _own_children() -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(stat.parent.name))
    return found


def run(spec: Spec) -> int:
    """Run one child to its end.

    Returns:
        The child's exit status, or 128 + the number of the signal that ended it.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        child = _spawn(spec)
    except (OSError, subprocess.SubprocessError) as error:
        _report(spec["report_fd"], {"error": str(error)})
        return 127
    _report(spec["report_fd"], {"pid": child.pid})
    _wait_for_a_reason(child, spec, wake_read)
    stopped = child.poll() is None
    status = _end(child, spec)
    if stopped and spec["remove"] is not None:
        shutil.rmtree(spec["remove"], ignore_errors=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1])))
