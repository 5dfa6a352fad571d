"""`offpeak up`."""

EXAMPLE = "Example: offpeak up --port 8700"


def up() -> None:
    """Not yet."""
