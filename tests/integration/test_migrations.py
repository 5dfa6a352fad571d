"""The migrated database is the one that the tables describe."""

from typing import Any

import psycopg
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, create_engine, inspect
from sqlalchemy.dialects.postgresql.base import ischema_names

from app.db.engine import open_database, sqlalchemy_url
from app.db.migrate import head_revision, migrate, schema_problem
from app.db.tables import SCHEMA, Xid8, metadata


def test_migrations_lead_to_the_tables_as_described(fresh_database_url: str) -> None:
    ischema_names["xid8"] = Xid8  # or reflection warns that it does not know the type
    engine = create_engine(sqlalchemy_url(fresh_database_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "version_table_schema": SCHEMA,
                "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
            },
        )
        difference: list[Any] = compare_metadata(context, metadata)
        checks = {
            table: {
                check["name"] for check in inspect(connection).get_check_constraints(table, SCHEMA)
            }
            for table in inspect(connection).get_table_names(SCHEMA)
        }
    engine.dispose()

    assert difference == []
    for table in metadata.sorted_tables:
        described = {c.name for c in table.constraints if isinstance(c, CheckConstraint)}
        assert described == checks[table.name], table.name


async def test_migrating_twice_changes_nothing_and_the_schema_then_fits(
    fresh_database_url: str,
) -> None:
    migrate(fresh_database_url)
    database = open_database(fresh_database_url)
    async with database.transaction() as tx:
        assert await schema_problem(tx, head=head_revision()) is None
        assert "run `offpeak migrate`" in (await schema_problem(tx, head="9999") or "")
    await database.dispose()


async def test_a_database_without_our_schema_is_told_apart(fresh_database_url: str) -> None:
    with psycopg.connect(fresh_database_url, autocommit=True) as owner:
        owner.execute("DROP SCHEMA offpeak CASCADE")
    database = open_database(fresh_database_url)
    async with database.transaction() as tx:
        assert "has no OFFPEAK schema" in (await schema_problem(tx, head="0001") or "")
    await database.dispose()
