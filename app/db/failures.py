"""What a failed statement means for whoever may try again."""

from sqlalchemy.exc import DBAPIError

# serialization_failure, deadlock_detected, lock_not_available
_TRANSIENT = frozenset({"40001", "40P01", "55P03"})


def is_transient(error: Exception) -> bool:
    """Return whether the transaction was rolled back for a reason that a repeat may not meet."""
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _TRANSIENT
