import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from app.embedded import homes
from app.embedded import server as server_module
from app.embedded.account import Account
from app.embedded.binaries import packaged_postgres
from app.embedded.errors import (
    BinaryMissing,
    DataVersionMismatch,
    ExitedEarly,
    HomeInUse,
    PortInUse,
)
from app.embedded.loopback import free_port
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from tests.integration.embedded.conftest import needs_root
from tests.waiting import has_ended

ROOT = Path(__file__).parents[3]
QUICK = PostgresOptions(fsync=False)


def value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_a_server_starts_answers_and_leaves_nothing_behind(bin_directory: Path | None) -> None:
    with EmbeddedPostgres.start(replace(QUICK, bin_directory=bin_directory)) as server:
        family = [server.process.pid, *_descendants(server.process.pid)]
        assert value(server.url, "SELECT 1") == 1
        assert value(server.url, "SHOW data_checksums") == "on"
        assert value(server.url, "SHOW server_encoding") == "UTF8"
        assert value(server.url, "SHOW listen_addresses") == "127.0.0.1"
        assert value(server.url, "SHOW unix_socket_directories") == ""
    assert all(has_ended(pid) for pid in family)
    assert not server.home.path.exists()


def test_two_servers_side_by_side_do_not_meet() -> None:
    with EmbeddedPostgres.start(QUICK) as one, EmbeddedPostgres.start(QUICK) as other:
        one.create_database("mine")
        assert one.port != other.port
        assert value(other.url, "SELECT count(*) FROM pg_database WHERE datname = 'mine'") == 0
        crossed = one.url.replace(str(one.port), str(other.port))
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(crossed)


def test_data_survives_a_restart_with_the_same_home(
    open_directory: Path, bin_directory: Path | None
) -> None:
    options = PostgresOptions(home=open_directory, bin_directory=bin_directory)
    with EmbeddedPostgres.start(options) as server:
        assert value(server.url, "SHOW fsync") == "on"
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    with EmbeddedPostgres.start(options) as server:
        assert value(server.url, "SELECT n FROM kept") == 7


def test_one_home_serves_one_instance(open_directory: Path) -> None:
    options = replace(QUICK, home=open_directory)
    with EmbeddedPostgres.start(options) as server:
        with pytest.raises(HomeInUse):
            EmbeddedPostgres.start(replace(options, start_seconds=0))
        assert value(server.url, "SELECT 1") == 1


def test_a_home_is_whole_and_free_again_after_its_owner_was_killed(open_directory: Path) -> None:
    script = f"""
import sys, psycopg
from pathlib import Path
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
server = EmbeddedPostgres.start(PostgresOptions(home=Path({str(open_directory)!r})))
with psycopg.connect(server.url) as connection:
    connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
print("committed", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "committed\n"
        owner.kill()
    with EmbeddedPostgres.start(PostgresOptions(home=open_directory)) as server:
        assert value(server.url, "SELECT n FROM kept") == 7


def test_a_home_written_by_another_version_is_refused(open_directory: Path) -> None:
    options = replace(QUICK, home=open_directory)
    with EmbeddedPostgres.start(options) as server:
        pass
    (server.data_directory / "PG_VERSION").write_text("9\n")
    with pytest.raises(DataVersionMismatch, match="Postgres 9, not 18"):
        EmbeddedPostgres.start(options)


def test_a_database_is_a_copy_of_its_template() -> None:
    with EmbeddedPostgres.start(QUICK) as server:
        template = server.create_database("origin")
        with psycopg.connect(template) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        copy = server.create_database("copy", template="origin")
        assert value(copy, "SELECT n FROM kept") == 7


def test_the_password_is_asked_for_and_shown_nowhere() -> None:
    with EmbeddedPostgres.start(QUICK) as server:
        password = psycopg.conninfo.conninfo_to_dict(server.url)["password"]
        assert isinstance(password, str)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url.replace(password, "wrong"))
        assert (server.home.path / "password").stat().st_mode & 0o077 == 0
        for pid in (server.process.pid, os.getpid(), psutil.Process(server.process.pid).ppid()):
            assert password not in " ".join(psutil.Process(pid).cmdline())
        for log in server.home.path.glob("*.log"):
            assert password not in log.read_text()
        assert password not in repr(server)


@needs_root
def test_root_drops_its_privileges(bin_directory: Path | None) -> None:
    with EmbeddedPostgres.start(replace(QUICK, bin_directory=bin_directory)) as server:
        process = psutil.Process(server.process.pid)
        assert 0 not in process.uids()
        assert 0 not in process.gids()
        assert (server.data_directory).stat().st_mode & 0o077 == 0
        groups = Path(f"/proc/{process.pid}/status").read_text().split("Groups:")[1]
        assert not groups.splitlines()[0].split()


def test_a_named_port_in_use_is_refused() -> None:
    with _taken_port() as taken, pytest.raises(PortInUse, match="Address already in use"):
        EmbeddedPostgres.start(replace(QUICK, port=taken.getsockname()[1]))


def test_losing_the_race_for_a_port_takes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with _taken_port() as taken:
        answers = iter([taken.getsockname()[1]])
        monkeypatch.setattr(server_module, "free_port", lambda: next(answers, None) or free_port())
        with EmbeddedPostgres.start(QUICK) as server:
            assert server.port != taken.getsockname()[1]
            assert value(server.url, "SELECT 1") == 1


def test_missing_binaries_are_named(tmp_path: Path) -> None:
    with pytest.raises(BinaryMissing, match="postgres was not found"):
        EmbeddedPostgres.start(replace(QUICK, bin_directory=tmp_path))


def test_a_failed_initdb_says_why_and_leaves_no_home(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("postgres", "initdb"):
        script = open_directory / program
        script.write_text("#!/bin/sh\necho no room left\nexit 3\n")
        script.chmod(0o755)
    temporary = open_directory / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with pytest.raises(ExitedEarly, match=r"status 3(.|\n)*no room left"):
        EmbeddedPostgres.start(replace(QUICK, bin_directory=open_directory))
    assert not list(temporary.iterdir())


def test_a_private_environment_still_starts(tmp_path: Path) -> None:
    """The programs lie below a 0700 directory that the dropped account cannot enter."""
    source = packaged_postgres().parent
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    install = private / source.parent.name / source.name
    shutil.copytree(source, install, symlinks=True, ignore=shutil.ignore_patterns("*.a"))
    libraries = f"{source.parent.name}.libs"
    shutil.copytree(source.parent.with_name(libraries), private / libraries)
    with EmbeddedPostgres.start(replace(QUICK, bin_directory=install / "bin")) as server:
        assert value(server.url, "SELECT 1") == 1
        program = Path(psutil.Process(server.process.pid).exe())
        assert program.is_relative_to(server.home.path) == (os.geteuid() == 0)


@needs_root
def test_a_home_below_a_private_directory_is_linked_elsewhere(
    tmp_path: Path, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes, "_STATE_ROOT", open_directory)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    options = replace(QUICK, home=private / "home")
    with EmbeddedPostgres.start(options) as first:
        assert first.home.path.is_relative_to(open_directory)
    with EmbeddedPostgres.start(options) as second:
        assert second.home.path == first.home.path
    assert (private / "home" / "postgres").resolve() == first.home.path


def test_reach_is_judged_by_every_directory_on_the_way(open_directory: Path) -> None:
    inner = open_directory / "closed" / "inner"
    inner.mkdir(parents=True)
    stranger = Account(uid=65_533, gid=65_533)
    assert stranger.reaches(inner)
    inner.parent.chmod(0o700)
    assert not stranger.reaches(inner)


def _taken_port() -> socket.socket:
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    return holder


def _descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
