"""The database, and one transaction of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.db.failures import away

APP_ROLE = "offpeak_app"
"""The gateway's and the worker's: reads all, changes money, slots and jobs by function only."""

OPERATOR_ROLE = "offpeak_operator"
"""Besides that says who serves, opens accounts, books deposits and lifts a halt."""


class Database:
    """A pool of connections under the restricted role."""

    def __init__(self, engine: AsyncEngine, statements: AsyncEngine) -> None:
        """Take an engine for transactions, and one whose connections commit each statement."""
        self._engine = engine
        self._statements = statements

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """Commit on a clean exit and roll back on any exception.

        <<<<<<< HEAD
        Only this and `statement` commit. Keep the block short: no call to an agent, a chain or a
        webhook belongs inside it.
        =======
        Nothing else in the code base commits. Keep the block short: no call to an
        agent, a chain or a webhook belongs inside it.

        Raises:
            DatabaseAway: there is no connection, or it broke; what was written may have committed.
        >>>>>>> reliability
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
    async def statement(self) -> AsyncGenerator[AsyncConnection]:
        """Take exactly one statement, which is a transaction of its own.

        Postgres commits it before it answers, or undoes it whole when it fails. It saves the two
        round trips of BEGIN and COMMIT, which on the hot path cost more than the statement.
        """
        async with self._statements.connect() as connection:
            yield connection

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
        await self._statements.dispose()


def sqlalchemy_url(url: str) -> str:
    """Return `url` with the one driver this project uses (psycopg), password included."""
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def open_database(url: str, *, pool_size: int = 8, role: str = APP_ROLE) -> Database:
    """Open a lazy pool on `url`, a `postgresql://` URL of a member of `role`.

    Every session drops to that role, whatever else the login may do.
    """
    # Two pools, because switching a connection's mode at each use costs more than a statement.
    for_statements = (pool_size + 1) // 2
    return Database(
        _engine(url, role=role, pool_size=max(pool_size - for_statements, 1)),
        _engine(
            url,
            role=role,
            pool_size=for_statements,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,  # nothing is ever open on them
        ),
    )


def _engine(url: str, *, role: str, **options: Any) -> AsyncEngine:
    return create_async_engine(
        sqlalchemy_url(url),
        max_overflow=0,
        pool_timeout=5,
        connect_args={
            "application_name": "offpeak",
            "options": f"-c role={role} -c jit=off -c timezone=UTC",
        },
        **options,
    )
