"""Real engines for the tests: one Postgres per run, one Valkey per worker, a database per module.

A run with xdist starts the Postgres in the controlling process, so that no worker's end can take it
from the others. Valkey is one per worker, because publish and subscribe know no databases.

OFFPEAK_TEST_DATABASE_URL, OFFPEAK_TEST_REDIS_URL name servers to use instead (the database role
must be allowed to create databases); OFFPEAK_TEST_POSTGRES_BIN names another Postgres to start.
"""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from app.db.migrate import migrate
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions, create_database
from app.embedded.valkey import EmbeddedValkey


def prepare_template(url: str) -> None:
    """Bring the template database, which every test database is a copy of, up to date.

    Must leave no connection open.
    """
    migrate(url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A server and the migrated database on it that test databases are copied from."""

    server_url: str
    template: str

    def create(self, *, like: str | None = None) -> str:
        """Return the URL of a new copy of the template, or of a database nobody is connected to."""
        name = f"test_{uuid.uuid4().hex}"
        template = self.template if like is None else urlsplit(like).path.lstrip("/")
        create_database(self.server_url, name, template=template)
        return _with_database(self.server_url, name)

    def drop(self, url: str) -> None:
        """Drop a database, ending whoever is still connected to it."""
        name = urlsplit(url).path.lstrip("/")
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(statement)


class RunningCluster:
    """The cluster of one test run and the process behind it, if it is ours."""

    def __init__(self) -> None:
        self._postgres: EmbeddedPostgres | None = None
        url = os.environ.get("OFFPEAK_TEST_DATABASE_URL")
        if url is None:
            programs = os.environ.get("OFFPEAK_TEST_POSTGRES_BIN")
            self._postgres = EmbeddedPostgres.start(
                PostgresOptions(fsync=False, bin_directory=Path(programs) if programs else None)
            )
            url = self._postgres.url
        self.cluster = Cluster(server_url=url, template=f"template_{uuid.uuid4().hex}")
        create_database(url, self.cluster.template)
        prepare_template(_with_database(url, self.cluster.template))

    def stop(self) -> None:
        """Stop our server; on somebody else's remove the template."""
        if self._postgres is not None:
            self._postgres.stop()
        else:
            self.cluster.drop(_with_database(self.cluster.server_url, self.cluster.template))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The run's Postgres; from the controlling process under xdist."""
    given = getattr(request.config, "workerinput", {}).get("offpeak_cluster")
    if given is not None:
        yield Cluster(server_url=given["server_url"], template=given["template"])
        return
    running = RunningCluster()
    yield running.cluster
    running.stop()


@pytest.fixture(scope="module")
def database_url(cluster: Cluster) -> Iterator[str]:
    """A superuser's URL (`postgresql://`) of a migrated database that this module alone uses."""
    url = cluster.create()
    yield url
    cluster.drop(url)


@pytest.fixture
def fresh_database_url(cluster: Cluster) -> Iterator[str]:
    """A superuser's URL of a migrated, empty database that this test alone uses."""
    url = cluster.create()
    yield url
    cluster.drop(url)


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """This worker's Valkey; prefer `redis_url`, which is empty at the start of each module."""
    url = os.environ.get("OFFPEAK_TEST_REDIS_URL")
    if url is not None:
        yield url
        return
    with EmbeddedValkey.start() as valkey:
        yield valkey.url


@pytest.fixture(scope="module")
def redis_url(valkey_url: str) -> str:
    """This worker's Valkey, emptied before each module."""
    import redis  # noqa: PLC0415  # unit tests do not need it

    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
    return valkey_url


def _with_database(server_url: str, name: str) -> str:
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
