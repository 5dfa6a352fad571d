"""`offpeak check`."""

from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

EXAMPLE = "Example: OFFPEAK_ENVIRONMENT=production offpeak check"


def check(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Print the effective settings, secrets hidden.

    Fails when they are not allowed in their environment.
    """
    from app.cli.server import read_settings  # noqa: PLC0415  # --help does without

    described = read_settings(home).described()
    rows = list(described.items())
    Output(as_json=as_json).rows(described, rows)
