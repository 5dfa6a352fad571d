"""`offpeak demo`."""

EXAMPLE = "Example: offpeak demo"


def demo() -> None:
    """Not yet."""
