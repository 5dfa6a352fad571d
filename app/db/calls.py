"""Calling the SQL functions of `functions/` with whole columns at once.

Parameters travel in Postgres' binary form: as text, psycopg spends 36 us on one 32-byte value of an
array and 640 us on a 700-byte one, in binary form half a microsecond (CPython 3.11, one core).
"""

from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy.ext.asyncio import AsyncConnection


class SqlFunction:
    """A set-returning function of schema `offpeak` whose rows begin with an ordinal `ord`."""

    def __init__(self, name: str, arguments: Mapping[str, str], *, columns: str) -> None:
        """Name a function.

        Args:
            name: Without the schema.
            arguments: Argument name without its `p_` to its SQL type.
            columns: What to select of its rows, in order.
        """
        passed = ", ".join(
            f"p_{argument} => %({argument})b::{kind}" for argument, kind in arguments.items()
        )
        self._query = f"SELECT {columns} FROM offpeak.{name}({passed}) ORDER BY ord".encode()  # noqa: S608 -- names of this module

    async def rows(
        self, tx: AsyncConnection, values: Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        """Call it inside `tx` and return its rows in the order of the items.

        Raises:
            DBAPIError: as every other statement; the transaction is then of no more use.
        """
        raw = await tx.get_raw_connection()
        connection = raw.driver_connection
        assert isinstance(connection, psycopg.AsyncConnection)
        cursor = await connection.execute(self._query, values, binary=True)
        return await cursor.fetchall()


class SqlScalar:
    """A function of schema `offpeak` that returns one number."""

    def __init__(self, name: str, arguments: Mapping[str, str]) -> None:
        """Name a function; `arguments` as `SqlFunction` takes them."""
        passed = ", ".join(
            f"p_{argument} => %({argument})b::{kind}" for argument, kind in arguments.items()
        )
        self._query = f"SELECT offpeak.{name}({passed})".encode()

    async def value(self, tx: AsyncConnection, values: Mapping[str, object]) -> int:
        """Call it inside `tx` and return its number, 0 for null; raises as `SqlFunction.rows`."""
        raw = await tx.get_raw_connection()
        connection = raw.driver_connection
        assert isinstance(connection, psycopg.AsyncConnection)
        cursor = await connection.execute(self._query, values, binary=True)
        row = await cursor.fetchone()
        return int(row[0] or 0) if row is not None else 0


class SqlRead:
    """A constant SELECT of the hot path, given to the driver as it is.

    Through SQLAlchemy a read of a job costs 370 us of CPU, so 200 us (CPython 3.11, one core).
    """

    def __init__(self, query: LiteralString) -> None:
        """Take the text with named parameters as psycopg writes them, `%(job)b`."""
        self._query = query.encode()

    async def rows(self, tx: AsyncConnection, values: Mapping[str, object]) -> list[Any]:
        """Return its rows as named tuples; raises as `SqlFunction.rows`."""
        raw = await tx.get_raw_connection()
        connection = raw.driver_connection
        assert isinstance(connection, psycopg.AsyncConnection)
        async with connection.cursor(binary=True, row_factory=namedtuple_row) as cursor:
            await cursor.execute(self._query, values)
            return await cursor.fetchall()
