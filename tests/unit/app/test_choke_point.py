"""Every route that spends goes through one function of one repository."""

from pathlib import Path

import app

SOURCES = Path(app.__file__).parent


def users(function: str) -> set[str]:
    """Return the modules that name an SQL function."""
    return {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if f'"{function}"' in path.read_text() or f"offpeak.{function}(" in path.read_text()
    }


def test_no_endpoint_shape_bypasses_the_one_choke_point() -> None:
    assert users("accept_many") == {"admission/repository.py"}
    assert users("settle_many") == {"dispatch/repository.py"}
    assert users("end_many") == {"dispatch/repository.py"}
