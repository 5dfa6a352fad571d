"""Expected failures of the database as a request meets them.

* DatabaseError
  - DatabaseAway
"""

from typing import ClassVar


class DatabaseError(Exception):
    """Base of every expected failure of the database."""

    code: ClassVar[str]


class DatabaseAway(DatabaseError):
    """The database does not answer; sending exactly the same again is safe and gets one job."""

    code = "database-away"

    def __init__(self, *, reason: str, retry_after_seconds: int = 1) -> None:
        super().__init__(f"the database does not answer ({reason})")
        self.retry_after_seconds = retry_after_seconds
