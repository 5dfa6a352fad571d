import asyncio
from pathlib import Path

import psycopg
import pytest
import redis

from app.embedded.engines import Engines, embedded_engines, running_engines
from app.embedded.errors import BinaryMissing
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.embedded.valkey import EmbeddedValkey, ValkeyOptions


def use(found: Engines) -> None:
    """The consumer: the same whoever runs the servers."""
    with psycopg.connect(found.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with redis.Redis.from_url(found.redis_url) as client:
        assert client.ping()


async def test_the_same_code_runs_on_our_engines_and_on_servers_given_by_url() -> None:
    async with embedded_engines(fsync=False) as ours:
        await asyncio.to_thread(use, ours)
        async with embedded_engines(
            database_url=ours.database_url, redis_url=ours.redis_url
        ) as given:
            assert given == ours
            await asyncio.to_thread(use, given)
        await asyncio.to_thread(use, ours)


def test_both_engines_keep_their_data_in_one_home(open_directory: Path) -> None:
    with running_engines(open_directory) as found, redis.Redis.from_url(found.redis_url) as client:
        client.set("kept", "7")
    with running_engines(open_directory) as found, redis.Redis.from_url(found.redis_url) as client:
        assert client.get("kept") == b"7"


def test_a_failed_start_leaves_no_engine_running(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: ValkeyOptions) -> None:
        raise BinaryMissing("valkey-server", looked_in="nowhere")

    started: list[EmbeddedPostgres] = []
    real = EmbeddedPostgres.start

    def remember(options: PostgresOptions) -> EmbeddedPostgres:
        started.append(real(options))
        return started[-1]

    monkeypatch.setattr(EmbeddedPostgres, "start", remember)
    monkeypatch.setattr(EmbeddedValkey, "start", fail)
    with pytest.raises(BinaryMissing), running_engines(fsync=False):
        pass
    assert started[0].process.status() is not None


def test_urls_are_not_shown() -> None:
    assert "secret" not in repr(Engines("postgresql://u:secret@h/d", "redis://:secret@h/0"))
