"""What every table is made with."""

from sqlalchemy import CheckConstraint, Column, DateTime, MetaData, func
from sqlalchemy.types import UserDefinedType

SCHEMA = "offpeak"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    },
)


class Xid8(UserDefinedType[str]):
    """A 64-bit transaction id (core Postgres 13+). Reads as text; never compared in Python."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


# Checks stand at the table: Alembic does not carry those written inside a column into a migration.


def one_of(column: str, *values: str) -> CheckConstraint:
    """Return the check that a text column has one of these values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", column)


def positive(column: str) -> CheckConstraint:
    """Return the check that a column is above zero."""
    return CheckConstraint(f"{column} > 0", column)


def not_negative(column: str) -> CheckConstraint:
    """Return the check that a column is zero or more."""
    return CheckConstraint(f"{column} >= 0", column)


def timestamp(name: str, *, default: bool = False, nullable: bool = False) -> Column[object]:
    """Return a `timestamptz` column; `default` is the time of the transaction."""
    server_default = func.now() if default else None
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=server_default)
