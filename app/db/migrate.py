"""Bring a Postgres server to this version: tables by Alembic, functions and grants by replay.

Functions are code, not data: every file of `functions/` is replayed after the
tables, and their digest is stored so that a gateway can tell whether it meets its own version.
"""

import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    insert,
    select,
    text,
)
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.schema import CreateSchema

from app.db.engine import sqlalchemy_url
from app.db.tables import SCHEMA, schema_functions

_MIGRATION_LOCK = 0x0FF9EA4C
_OLDEST_POSTGRES = 150000
_REVISION = re.compile(r'^(revision|down_revision)\b[^=\n]*= "(\w+)"$', re.MULTILINE)

_alembic_version = Table("alembic_version", MetaData(schema=SCHEMA), Column("version_num", Text))


class MigrationError(Exception):
    """Base of what can keep a server from being brought to this version."""

    code: ClassVar[str]


class PostgresTooOld(MigrationError):
    """The server is older than Postgres 15."""

    code = "postgres-too-old"


class DatabaseUnreachable(MigrationError):
    """No connection to the database could be made."""

    code = "database-unreachable"


def functions_sql() -> list[str]:
    """Return the SQL function files in the order in which they are applied."""
    folder = files("app.db") / "functions"
    return [path.read_text("utf-8") for path in sorted(folder.iterdir(), key=lambda p: p.name)]


def functions_digest() -> str:
    """Return the SHA-256 of this version's functions, hex."""
    return hashlib.sha256("\n".join(functions_sql()).encode()).hexdigest()


def head_revision() -> str:
    """Return the newest table revision of this version.

    Read from the files: importing Alembic for it costs a starting gateway 0.3 s and 4 MB.
    """
    found: dict[str, str | None] = {}
    for path in (_migrations_folder() / "versions").glob("*.py"):
        names = dict(_REVISION.findall(path.read_text("utf-8")))
        found[names["revision"]] = names.get("down_revision")
    [head] = found.keys() - found.values()
    return head


async def schema_problem(tx: AsyncConnection, *, head: str) -> str | None:
    """Return why this server's schema does not fit this version, or None when it does."""
    try:
        revision = await tx.scalar(select(_alembic_version.c.version_num))
        digest = await tx.scalar(select(schema_functions.c.digest))
    except ProgrammingError:
        return "the database has no OFFPEAK schema; run `offpeak migrate`"
    if revision != head:
        return f"tables are at {revision}, this version needs {head}; run `offpeak migrate`"
    if digest != functions_digest():
        return "SQL functions are of another version; run `offpeak migrate`"
    return None


def migrate(url: str) -> None:
    """Bring the database at `url` (its owner's URL) to this version. Safe to repeat and to race.

    Raises:
        DatabaseUnreachable: no connection.
        PostgresTooOld: the server is older than Postgres 15.
    """
    engine = create_engine(sqlalchemy_url(url))
    try:
        with engine.begin() as tx:
            _apply(tx)
    except OperationalError as error:
        raise DatabaseUnreachable(str(error.orig).strip().partition("\n")[0]) from error
    finally:
        engine.dispose()


def _apply(tx: Connection) -> None:
    version = tx.scalar(text("SELECT current_setting('server_version_num')::int"))
    if version < _OLDEST_POSTGRES:
        raise PostgresTooOld(f"Postgres 15 or newer is needed, this is {version // 10000}")
    tx.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    tx.execute(CreateSchema(SCHEMA, if_not_exists=True))
    _upgrade_tables(tx)
    for script in functions_sql():
        tx.exec_driver_sql(script, execution_options={"no_parameters": True})
    tx.execute(delete(schema_functions))
    tx.execute(insert(schema_functions).values(digest=functions_digest()))


def _upgrade_tables(tx: Connection) -> None:
    from alembic import command  # noqa: PLC0415  # only migrations pay for it
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_migrations_folder()))
    config.attributes["connection"] = tx
    command.upgrade(config, "head")


def _migrations_folder() -> Path:
    return Path(__file__).parent / "migrations"
