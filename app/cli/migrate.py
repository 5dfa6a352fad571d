"""`offpeak migrate`."""

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

    from app.cli.server import store_settings  # noqa: PLC0415
    from app.db import migrate as migrations  # noqa: PLC0415

    settings = store_settings(home)
    url = settings.migration_database_url or settings.database_url
    try:
        migrations.migrate(url.get_secret_value())
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") in NOT_ALLOWED:
            raise NotOwner(str(error.orig).partition("\n")[0]) from error
        raise
    rows = [("tables", migrations.head_revision()), ("functions", migrations.functions_digest())]
    Output(as_json=as_json).rows(dict(rows), rows)
