"""`offpeak migrate`."""

from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

EXAMPLE = "Example: OFFPEAK_MIGRATION_DATABASE_URL=postgresql://owner@host/db offpeak migrate"


def migrate(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Bring the database to this version.

    Tables, functions and grants, as the owner of the schema. Safe to repeat and to race.
    """
    from app.cli.server import read_settings  # noqa: PLC0415  # --help does without
    from app.db import migrate as migrations  # noqa: PLC0415

    settings = read_settings(home)
    url = settings.migration_database_url or settings.database_url
    migrations.migrate(url.get_secret_value())
    rows = [("tables", migrations.head_revision()), ("functions", migrations.functions_digest())]
    Output(as_json=as_json).rows(dict(rows), rows)
