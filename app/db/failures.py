"""What a failed statement means for whoever may try again."""

import psycopg
from sqlalchemy.exc import DBAPIError

# serialization_failure, deadlock_detected, lock_not_available
_TRANSIENT = frozenset({"40001", "40P01", "55P03"})


def is_transient(error: Exception) -> bool:
    """Return whether the transaction was rolled back for a reason that a repeat may not meet."""
    # statements sent past SQLAlchemy (`calls`) raise the driver's own errors
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, psycopg.Error) and cause.sqlstate in _TRANSIENT
