"""What a failed statement means for whoever may try again."""

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from app.db.errors import DatabaseAway

# serialization_failure, deadlock_detected, lock_not_available
_TRANSIENT = frozenset({"40001", "40P01", "55P03"})

# connection exceptions; shut down, crashed, starting up, not accepting; too many connections
_AWAY = ("08", "57P01", "57P02", "57P03", "57P05", "53300")


def is_transient(error: Exception) -> bool:
    """Return whether the transaction was rolled back for a reason that a repeat may not meet."""
    # statements sent past SQLAlchemy (`calls`) raise the driver's own errors
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, psycopg.Error) and cause.sqlstate in _TRANSIENT


def away(error: Exception) -> DatabaseAway | None:
    """Return the error to raise instead when the server or the connection to it is gone, else None.

    Whether the transaction had committed is then unknown; every call that writes is safe to repeat.
    """
    if isinstance(error, NoConnectionFree):
        return DatabaseAway(reason="every connection is in use")
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return None
    state = cause.sqlstate
    if state is None:
        return DatabaseAway(reason=type(cause).__name__)
    return DatabaseAway(reason=state) if state.startswith(_AWAY) else None
