"""Alembic's entry: runs on the connection that `app.db.migrate` hands over."""

from alembic import context

from app.db.tables import SCHEMA, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    include_schemas=True,
    version_table_schema=SCHEMA,
    include_name=lambda name, type_, _: type_ != "schema" or name == SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
