"""A Postgres and a Valkey of a test's own that can be killed and come back where they were."""

import shutil
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from app.db.migrate import migrate
from app.embedded.loopback import free_port
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.embedded.valkey import EmbeddedValkey, ValkeyOptions

DATABASE = "offpeak"


@dataclass
class Stores:
    """Both servers with a home that lasts, the same port and password at each start, fsync on."""

    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="offpeak-stores-")))
    _postgres: EmbeddedPostgres | None = None
    _valkey: EmbeddedValkey | None = None
    _postgres_port: int = field(default_factory=free_port)
    _valkey_port: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        self.home.chmod(0o755)  # the engines' account must get in
        fresh = PostgresOptions(home=self.home, fsync=False)  # making the cluster need not last
        EmbeddedPostgres.start(fresh).stop()
        self.start_postgres()
        assert self._postgres is not None
        self._postgres.create_database(DATABASE)
        migrate(self.database_url)
        self.start_valkey()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._postgres, self._valkey):
            if server is not None:
                server.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def database_url(self) -> str:
        """The superuser's URL of the database; it outlives the server."""
        assert self._postgres is not None
        return self._postgres.database_url(DATABASE)

    @property
    def redis_url(self) -> str:
        """Valkey's URL; it outlives the server."""
        assert self._valkey is not None
        return self._valkey.url

    @property
    def is_postgres_up(self) -> bool:
        """Whether Postgres runs."""
        return self._postgres is not None and self._postgres.process.status() is None

    @property
    def is_valkey_up(self) -> bool:
        """Whether Valkey runs."""
        return self._valkey is not None and self._valkey.process.status() is None

    def start_postgres(self) -> None:
        """Start Postgres (it recovers from its log when it was killed)."""
        options = PostgresOptions(home=self.home, port=self._postgres_port, start_seconds=60)
        self._postgres = EmbeddedPostgres.start(options)

    def start_valkey(self) -> None:
        """Start Valkey on the data it had."""
        self._valkey = EmbeddedValkey.start(ValkeyOptions(home=self.home, port=self._valkey_port))

    def kill_postgres(self) -> None:
        """SIGKILL the postmaster, and return once it and its backends are gone."""
        assert self._postgres is not None
        self._postgres.process.signal(signal.SIGKILL)
        self._postgres.stop()

    def kill_valkey(self) -> None:
        """SIGKILL Valkey, and return once it is gone."""
        assert self._valkey is not None
        self._valkey.process.signal(signal.SIGKILL)
        self._valkey.stop()
