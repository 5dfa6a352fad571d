"""`offpeak migrate`."""

import os
from pathlib import Path

from app.cli.errors import NotOwner
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

EXAMPLE = "Example: OFFPEAK_MIGRATION_DATABASE_URL=postgresql://owner@host/db offpeak migrate"

NOT_ALLOWED = frozenset({"42501"})
"""SQLSTATE insufficient_privilege; also what Postgres says to who is not a table's owner."""


def migrate(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Bring the database to this version.

    Tables, functions and grants, as the owner of the schema. Safe to repeat and to race.
    """
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415  # --help does without

    from app.db import migrate as migrations  # noqa: PLC0415

    try:
        migrations.migrate(owner_url(home))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") in NOT_ALLOWED:
            raise NotOwner(str(error.orig).partition("\n")[0]) from error
        raise
    rows = [("tables", migrations.head_revision()), ("functions", migrations.functions_digest())]
    Output(as_json=as_json).rows(dict(rows), rows)


def owner_url(home: Path) -> str:
    """Return where to connect: the owner's URL, for which nothing else has to be set."""
    from app.cli.server import store_settings  # noqa: PLC0415  # --help does without

    given = os.environ.get("OFFPEAK_MIGRATION_DATABASE_URL")
    if given:
        return given
    settings = store_settings(home)
    return (settings.migration_database_url or settings.database_url).get_secret_value()
