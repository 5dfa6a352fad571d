import os
import pwd
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from app.embedded.account import Account
from app.embedded.errors import ExecFailed, ExitedEarly, StartTimeout
from app.embedded.supervisor import ChildProcess, Command
from tests.integration.embedded.conftest import needs_root
from tests.waiting import has_ended, wait_until

ROOT = Path(__file__).parents[3]

IMPORTS = os.pathsep.join([str(ROOT), *sys.path])

ENGINES = """
import sys
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.embedded.valkey import EmbeddedValkey
postgres = EmbeddedPostgres.start(PostgresOptions(fsync=False))
valkey = EmbeddedValkey.start()
print(postgres.home.path, valkey.home.path, flush=True)
sys.stdin.read()
"""

FORKING = """
import os, signal, sys
from pathlib import Path
from app.embedded.supervisor import ChildProcess, Command
child = ChildProcess.start(Command(name="sleep", argv=("/bin/sleep", "600"), log=Path("{log}")))
fork = os.fork()
if fork == 0:
    os.close(1)
    signal.pause()
print(child.pid, fork, flush=True)
sys.stdin.read()
"""


def shell(tmp_path: Path, script: str, *, grace_seconds: float = 10.0) -> Command:
    return Command(
        name="script",
        argv=("/bin/sh", "-c", script),
        log=tmp_path / "script.log",
        grace_seconds=grace_seconds,
    )


def test_nothing_survives_a_parent_killed_by_sigkill() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENGINES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": IMPORTS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        directories = [Path(path) for path in parent.stdout.readline().split()]
        family = psutil.Process(parent.pid).children(recursive=True)
        names = {process.name() for process in family}
        assert {"postgres", "valkey-server"} <= names
        assert all(path.is_dir() for path in directories)
        parent.kill()
    wait_until(lambda: all(has_ended(process.pid) for process in family))
    assert not any(path.exists() for path in directories)


def test_nothing_survives_even_when_a_fork_of_the_parent_does(tmp_path: Path) -> None:
    """A fork holds a copy of the lifeline, so the guard also watches who its parent is."""
    script = FORKING.format(log=tmp_path / "log")
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": IMPORTS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child, fork = (int(word) for word in parent.stdout.readline().split())
        parent.kill()
        wait_until(lambda: has_ended(child))
        assert not has_ended(fork)
        os.kill(fork, signal.SIGKILL)


@pytest.mark.parametrize("engine", ["postgres", "valkey-server"])
def test_an_engine_ends_even_when_its_guard_is_killed(engine: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENGINES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": IMPORTS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        directories = parent.stdout.readline().split()
        family = psutil.Process(parent.pid).children(recursive=True)
        main = next(process for process in family if process.name() == engine)
        members = [main, *main.children(recursive=True)]
        guard = main.parent()
        assert guard is not None
        guard.kill()
        wait_until(lambda: all(has_ended(process.pid) for process in members))
        parent.kill()
    wait_until(lambda: all(has_ended(process.pid) for process in family))
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)  # of the killed guard


@needs_root
def test_a_user_without_privileges_starts_the_same_engines(open_directory: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    account = Account(uid=nobody.pw_uid, gid=nobody.pw_gid)
    interpreter = next(filter(account.reaches, interpreters()), None)
    if interpreter is None or not account.reaches(ROOT / "app"):
        pytest.skip("the unprivileged account can reach no interpreter, or not this checkout")
    account.own(open_directory)
    with subprocess.Popen(
        [interpreter, "-c", ENGINES],
        cwd=open_directory,
        env={"PYTHONPATH": IMPORTS, "PATH": os.environ["PATH"], "TMPDIR": str(open_directory)},
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert len(parent.stdout.readline().split()) == 2
        family = psutil.Process(parent.pid).children(recursive=True)
        assert {process.uids().real for process in family} == {account.uid}
        parent.kill()
    wait_until(lambda: all(has_ended(process.pid) for process in family))


def interpreters() -> Iterator[Path]:
    """This interpreter, then the system's of the same version."""
    yield Path(sys.executable)
    system = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    if system.exists():
        yield system


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[ChildProcess] = []
    command = shell(tmp_path, "echo up; exec sleep 600")
    thread = threading.Thread(target=lambda: started.append(ChildProcess.start(command)))
    thread.start()
    thread.join()
    with started[0] as child:
        child.wait_ready(lambda: "up" in child.log_tail(), timeout_seconds=30)
        assert child.status() is None


def test_stopping_sends_the_signal_and_reports_the_status(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"
    child = ChildProcess.start(shell(tmp_path, script))
    child.wait_ready(lambda: "up" in child.log_tail(), timeout_seconds=30)
    assert child.stop() == 5
    assert child.stop() == 5
    assert "bye" in child.log_tail()


def test_a_parent_with_many_open_files_still_has_children(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4_096:
        pytest.skip("this account may not open that many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4_096), hard))
    with ExitStack() as files:
        for _ in range(1_100):
            files.enter_context(Path(os.devnull).open("rb"))
        child = ChildProcess.start(
            shell(tmp_path, "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done")
        )
        child.wait_ready(lambda: "up" in child.log_tail(), timeout_seconds=30)
        assert child.stop() == 5
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_child_that_ignores_its_signal_is_killed_with_all_it_started(tmp_path: Path) -> None:
    """Leftover child processes drain the node (submitit#1780): kill the group, check for more."""
    script = "trap '' TERM; setsid sleep 601 & sleep 602 & echo up; wait; sleep 603"
    child = ChildProcess.start(shell(tmp_path, script, grace_seconds=0.05))
    child.wait_ready(lambda: "up" in child.log_tail(), timeout_seconds=30)
    wait_until(lambda: len(psutil.Process(child.pid).children()) == 2)
    family = [process.pid for process in psutil.Process(child.pid).children(recursive=True)]
    assert child.stop() == 128 + signal.SIGKILL
    assert all(has_ended(pid) for pid in [child.pid, *family])


def test_what_a_child_left_running_goes_with_it(tmp_path: Path) -> None:
    child = ChildProcess.start(shell(tmp_path, "setsid sleep 604 & echo $!; exit 0"))
    assert child.wait(30) == 0
    assert has_ended(int(child.log_tail()))


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    command = Command(name="ghost", argv=("/nowhere/ghost",), log=tmp_path / "log")
    with pytest.raises(ExecFailed, match=r"ghost could not be run: .*No such file"):
        ChildProcess.start(command)


def test_ending_before_being_ready_shows_the_log(tmp_path: Path) -> None:
    child = ChildProcess.start(shell(tmp_path, "echo broken disk; exit 4"))
    with pytest.raises(ExitedEarly, match=r"status 4(.|\n)*broken disk"):
        child.wait_ready(lambda: False, timeout_seconds=30)


def test_an_end_with_status_zero_before_being_ready_is_a_failure(tmp_path: Path) -> None:
    """An engine dies with exit code 0 (vllm#48966)."""
    child = ChildProcess.start(shell(tmp_path, "exit 0"))
    with pytest.raises(ExitedEarly, match="status 0"):
        child.wait_ready(lambda: False, timeout_seconds=30)


def test_not_being_ready_in_time_shows_the_log_and_stops_it(tmp_path: Path) -> None:
    script = f"echo thinking; exec {shlex.quote('/bin/sleep')} 605"
    child = ChildProcess.start(shell(tmp_path, script))
    child.wait_ready(lambda: "thinking" in child.log_tail(), timeout_seconds=30)
    with pytest.raises(StartTimeout, match="0 s\nthinking"):
        child.wait_ready(lambda: False, timeout_seconds=0)
    assert has_ended(child.pid)


def open_descriptors() -> set[tuple[str, str]]:
    """This process's descriptors with what each is open on."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that reads this folder
            found.add((each.name, str(each.readlink())))
    return found


def test_a_command_that_ended_by_itself_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = open_descriptors()
    assert ChildProcess.start(shell(tmp_path, "exit 0")).wait(30) == 0
    failing = ChildProcess.start(shell(tmp_path, "exit 1"))
    with pytest.raises(ExitedEarly):
        failing.wait_ready(lambda: False, timeout_seconds=30)
    assert open_descriptors() <= before  # what others had open may be closed meanwhile


def test_a_directory_goes_when_its_process_is_stopped(tmp_path: Path) -> None:
    directory = tmp_path / "scratch"
    directory.mkdir()
    command = Command(
        name="script", argv=("/bin/sleep", "606"), log=tmp_path / "log", remove=directory
    )
    ChildProcess.start(command).stop()
    assert not directory.exists()


def test_a_child_gets_the_environment_it_was_given_and_no_open_files(tmp_path: Path) -> None:
    command = Command(
        name="script",
        argv=("/bin/sh", "-c", "echo $WORD; ls /proc/self/fd | wc -l"),
        log=tmp_path / "log",
        env={"WORD": "hello", "PATH": "/usr/bin:/bin"},
    )
    child = ChildProcess.start(command)
    assert child.wait(30) == 0
    assert child.log_tail().split() == ["hello", "4"]  # 0, 1, 2 and the directory listed
