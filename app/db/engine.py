"""The database, and one transaction of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.db.failures import away

APP_ROLE = "offpeak_app"
"""The restricted role: may read, may execute the public functions, may write three plain tables."""


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
            DatabaseAway: there is no connection, or it broke; what was written may have committed.
        """
        try:
            async with self._engine.begin() as tx:
                yield tx
        except Exception as error:
            instead = away(error)
            if instead is None:
                raise
            raise instead from error

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[AsyncConnection]:
        """One REPEATABLE READ, read-only view: every query in the block sees the same instant."""
        async with self._engine.connect() as connection:
            view = await connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            yield view

    async def dispose(self) -> None:
        await self._engine.dispose()


def sqlalchemy_url(url: str) -> str:
    """Return `url` with the one driver this project uses (psycopg), password included."""
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def open_database(url: str, *, pool_size: int = 8) -> Database:
    """Open a lazy pool on `url`, a `postgresql://` URL of a member of the restricted role.

    Every session drops to that role, whatever else the login may do.
    """
    engine = create_async_engine(
        sqlalchemy_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        connect_args={
            "application_name": "offpeak",
            "options": f"-c role={APP_ROLE} -c jit=off -c timezone=UTC",
        },
    )
    return Database(engine)
