"""`offpeak check`."""

import os

from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output
from app.cli.variables import unknown_variables

EXAMPLE = "Example: OFFPEAK_ENVIRONMENT=production offpeak check"


def check(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Print the effective settings, secrets hidden.

    Fails when they are not allowed in their environment; warns of OFFPEAK_ variables that
    nothing reads.
    """
    from app.cli.server import read_settings  # noqa: PLC0415  # --help does without

    output = Output(as_json=as_json)
    described = read_settings(home).described()
    for line in unknown_variables(os.environ, described):
        output.note(f"warning: {line}")
    output.rows(described, list(described.items()))
