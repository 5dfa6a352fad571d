"""The database, and one transaction of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.db.failures import typed

APP_ROLE = "offpeak_app"
"""The restricted role: may read, may execute the public functions, may write three plain tables."""


SNAPSHOT_SECONDS = 600
"""The longest statement of a snapshot: recomputing the books reads every transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseLimits:
    """How long one session waits for what, in seconds."""

    connect: int = 5
    statement: float = 10.0
    lock: float = 5.0
    idle_in_transaction: float = 10.0

    def options(self) -> str:
        """Return the limits as command-line options of a Postgres session."""
        limits = {
            "statement_timeout": self.statement,
            "lock_timeout": self.lock,
            "idle_in_transaction_session_timeout": self.idle_in_transaction,
        }
        return " ".join(f"-c {name}={int(1000 * value)}" for name, value in limits.items())


class Database:
    """A pool of connections under the restricted role."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """Commit on a clean exit and roll back on any exception.

        Nothing else in the code base commits. Keep the block short: no call to an
        agent, a chain or a webhook belongs inside it.

        Raises:
            DatabaseUnavailable: no connection or no answer in time; it may have committed.
            DatabaseConflict: deadlock, serialization or a lock not had in time; rolled back.
        """
        try:
            async with self._engine.begin() as tx:
                yield tx
        except Exception as error:
            ours = typed(error)
            if ours is None:
                raise
            raise ours from error

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[AsyncConnection]:
        """One REPEATABLE READ, read-only view: every query in the block sees the same instant."""
        async with self._engine.connect() as connection:
            view = await connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            await view.execute(text(f"SET LOCAL statement_timeout = {SNAPSHOT_SECONDS * 1000}"))
            yield view

    async def dispose(self) -> None:
        await self._engine.dispose()


def sqlalchemy_url(url: str) -> str:
    """Return `url` with the one driver this project uses (psycopg), password included."""
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def open_database(
    url: str, *, pool_size: int = 8, limits: DatabaseLimits | None = None
) -> Database:
    """Open a lazy pool on `url`, a `postgresql://` URL of a member of the restricted role.

    Every session drops to that role, whatever else the login may do. A connection is asked before
    it is used, so that a restarted server costs nobody an error.
    """
    limits = limits or DatabaseLimits()
    engine = create_async_engine(
        sqlalchemy_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=limits.connect,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "application_name": "offpeak",
            "options": f"-c role={APP_ROLE} -c jit=off -c timezone=UTC {limits.options()}",
            "connect_timeout": limits.connect,
            # A server that vanished without a word is noticed by the kernel.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": int(1000 * (limits.statement + limits.connect)),
        },
    )
    return Database(engine)
