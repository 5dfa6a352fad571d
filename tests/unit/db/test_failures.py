"""What a failed statement means: try again, come back later, or a bug."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from app.db.failures import away, is_transient


def wrapped(error: Exception) -> DBAPIError:
    return DBAPIError("SELECT 1", {}, error)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("connection refused"),
        psycopg.OperationalError("consuming input failed: server closed the connection"),
        psycopg.InterfaceError("the connection is closed"),
        errors.AdminShutdown("terminating connection"),
        errors.CrashShutdown("terminating connection because of crash"),
        errors.CannotConnectNow("the database system is starting up"),
        errors.TooManyConnections("too many clients"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_lost_database_is_told_as_that_and_not_retried_as_a_lock(error: Exception) -> None:
    for raised in (error, wrapped(error)):
        found = away(raised)
        assert found is not None
        assert found.retry_after_seconds == 1
        assert not is_transient(raised)
    assert away(NoConnectionFree("pool")) is not None


@pytest.mark.parametrize(
    "error",
    [errors.DeadlockDetected("x"), errors.UniqueViolation("x"), errors.RaiseException("x")],
    ids=lambda error: type(error).__name__,
)
def test_serialization_errors_and_bugs_are_not_a_lost_database(error: Exception) -> None:
    assert away(error) is None
    assert away(wrapped(error)) is None
    assert is_transient(error) == isinstance(error, errors.DeadlockDetected)
