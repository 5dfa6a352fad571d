"""Which version of the SQL functions the database has."""

from sqlalchemy import Boolean, CheckConstraint, Column, Table, Text, text

from app.db.tables.base import metadata

schema_functions = Table(
    "schema_functions",
    metadata,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("digest", Text, nullable=False),
    CheckConstraint("only_row", "only_row"),
)
