"""The database, and one transaction of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import structlog
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.db.failures import FAILURES, typed

APP_ROLE = "offpeak_app"
"""The gateway's and the worker's: reads all, changes money, slots and jobs by function only."""

OPERATOR_ROLE = "offpeak_operator"
"""Besides that says who serves, opens accounts, books deposits and lifts a halt."""

TREASURY_ROLE = "offpeak_treasury"
"""The application's, that besides books what the chain says and sends transactions."""


PROBES = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
"""A client that vanished without a word is noticed by the server, which ends its locks."""

LOCK = text("SELECT pg_try_advisory_lock(hashtextextended(:name, 0))")
UNLOCK = text("SELECT pg_advisory_unlock(hashtextextended(:name, 0))")

SNAPSHOT_SECONDS = 600
"""The longest statement of a snapshot: recomputing the books reads every transfer."""

log = structlog.get_logger()


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

    def __init__(self, engine: AsyncEngine, statements: AsyncEngine) -> None:
        """Take an engine for transactions, and one whose connections commit each statement."""
        self._engine = engine
        self._statements = statements

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
        except FAILURES as error:
            raise_typed(error)

    @asynccontextmanager
    async def statement(self) -> AsyncGenerator[AsyncConnection]:
        """Take exactly one statement, which is a transaction of its own.

        Postgres commits it before it answers, or undoes it whole when it fails. It saves the two
        round trips of BEGIN and COMMIT, which on the hot path cost more than the statement.

        Raises:
            DatabaseUnavailable, DatabaseConflict: as `transaction`.
        """
        try:
            async with self._statements.connect() as connection:
                yield connection
        except FAILURES as error:
            raise_typed(error)

    @asynccontextmanager
    async def locked(self, name: str) -> AsyncGenerator[AsyncConnection | None]:
        """One connection that alone holds the lock `name`; None while another session holds it.

        Each statement on it is a transaction of its own. The lock is the session's: whoever has
        lost the connection has lost the lock, and finds out at the next statement. So everything
        that must be done by one process at a time is written on this connection.

        Raises:
            DatabaseUnavailable, DatabaseConflict: as `transaction`.
        """
        try:
            async with self._statements.connect() as connection:
                if not await connection.scalar(LOCK, {"name": name}):
                    yield None
                    return
                try:
                    yield connection
                finally:
                    await _unlock(connection, name)
        except FAILURES as error:
            raise_typed(error)

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[AsyncConnection]:
        """One REPEATABLE READ, read-only view: every query in the block sees the same instant.

        Raises:
            DatabaseUnavailable, DatabaseConflict: as `transaction`.
        """
        try:
            async with self._engine.connect() as connection:
                view = await connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
                await view.execute(text(f"SET LOCAL statement_timeout = {SNAPSHOT_SECONDS * 1000}"))
                yield view
        except FAILURES as error:
            raise_typed(error)

    async def dispose(self) -> None:
        await self._engine.dispose()
        await self._statements.dispose()


def sqlalchemy_url(url: str) -> str:
    """Return `url` with the one driver this project uses (psycopg), password included."""
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def open_database(
    url: str,
    *,
    pool_size: int = 8,
    role: str = APP_ROLE,
    limits: DatabaseLimits | None = None,
) -> Database:
    """Open a lazy pool on `url`, a `postgresql://` URL of a member of `role`.

    Every session drops to that role, whatever else the login may do. A connection is asked before
    it is used, so that a restarted server costs nobody an error.
    """
    limits = limits or DatabaseLimits()
    # Two pools, because switching a connection's mode at each use costs more than a statement.
    for_statements = (pool_size + 1) // 2
    return Database(
        _engine(url, role, limits, pool_size=max(pool_size - for_statements, 1)),
        _engine(
            url,
            role,
            limits,
            pool_size=for_statements,
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,  # nothing is ever open on them
        ),
    )


def raise_typed(error: Exception) -> NoReturn:
    """Raise a failure of the database itself as our own error, any other as it is."""
    ours = typed(error)
    if ours is None:
        raise error
    raise ours from error


async def _unlock(connection: AsyncConnection, name: str) -> None:
    """Give the lock back; where that fails the session ends, which gives it back too."""
    freed = False
    try:
        freed = bool(await connection.scalar(UNLOCK, {"name": name}))
    except FAILURES:
        log.warning("a lock was lost with its connection", lock=name)
    finally:
        if not freed:
            await connection.invalidate()


def _engine(url: str, role: str, limits: DatabaseLimits, **options: Any) -> AsyncEngine:
    return create_async_engine(
        sqlalchemy_url(url),
        max_overflow=0,
        pool_timeout=limits.connect,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "application_name": "offpeak",
            "options": f"-c role={role} -c jit=off -c timezone=UTC {limits.options()} {PROBES}",
            "connect_timeout": limits.connect,
            # A server that vanished without a word is noticed by the kernel.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": int(1000 * (limits.statement + limits.connect)),
        },
        **options,
    )
