"""What a failed statement means for whoever may try again."""

import psycopg
from sqlalchemy import exc

from app.kit.errors import DatabaseConflict, DatabaseUnavailable

# serialization_failure, deadlock_detected, lock_not_available
_CONFLICT = frozenset({"40001", "40P01", "55P03"})
# query_canceled (statement_timeout), too_many_connections, out of resources, the server stopping,
# idle_in_transaction_session_timeout, read-only after a failover, connection exceptions
_UNAVAILABLE = ("57014", "53", "57P", "25P03", "25006", "08")


FAILURES = (exc.SQLAlchemyError, psycopg.Error, OSError)
"""What a statement may raise for the database's own sake."""


def typed(error: Exception) -> DatabaseUnavailable | DatabaseConflict | None:
    """Return a failure of the database itself as our own error, None for any other.

    A lost connection says nothing about a commit under way: unknown is not failed.
    """
    # statements sent past SQLAlchemy (`calls`) raise the driver's own errors
    cause = error.orig if isinstance(error, exc.DBAPIError) else error
    if isinstance(cause, exc.TimeoutError):
        return DatabaseUnavailable("no free connection in time")
    if isinstance(cause, OSError):
        return DatabaseUnavailable("no connection")
    return _of_driver(cause) if isinstance(cause, psycopg.Error) else None


def _of_driver(cause: psycopg.Error) -> DatabaseUnavailable | DatabaseConflict | None:
    state = cause.sqlstate
    if state in _CONFLICT:
        return DatabaseConflict("too many met the same rows")
    if state is not None and state.startswith(_UNAVAILABLE):
        return DatabaseUnavailable("no answer in time" if state == "57014" else "not available")
    if state is None and isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseUnavailable("no connection")
    return None


def is_transient(error: Exception) -> bool:
    """Return whether the transaction was rolled back for a reason that a repeat may not meet."""
    return isinstance(error, DatabaseConflict)


def is_unknown(error: Exception) -> bool:
    """Return whether nobody knows if the transaction was done; a repeat finds out."""
    return isinstance(error, DatabaseUnavailable)
