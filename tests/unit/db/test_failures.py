"""What a failed statement means: try again, come back later, or a bug."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from app.db.failures import is_transient, is_unknown, typed


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
        errors.QueryCanceled("statement timeout"),
        errors.IdleInTransactionSessionTimeout("idle"),
        OSError("no route to host"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_lost_database_is_told_as_that_and_not_retried_as_a_lock(error: Exception) -> None:
    for raised in (error, wrapped(error)):
        found = typed(raised)
        assert found is not None
        assert is_unknown(found)
        assert not is_transient(found)
    pool = typed(NoConnectionFree("pool"))
    assert pool is not None
    assert is_unknown(pool)


@pytest.mark.parametrize(
    "error",
    [errors.DeadlockDetected("x"), errors.LockNotAvailable("x"), errors.SerializationFailure("x")],
    ids=lambda error: type(error).__name__,
)
def test_serialization_errors_are_rolled_back_and_not_a_lost_database(error: Exception) -> None:
    for raised in (error, wrapped(error)):
        found = typed(raised)
        assert found is not None
        assert is_transient(found)
        assert not is_unknown(found)


@pytest.mark.parametrize("error", [errors.UniqueViolation("x"), errors.RaiseException("x")])
def test_a_bug_is_neither(error: Exception) -> None:
    assert typed(error) is None
    assert typed(wrapped(error)) is None
