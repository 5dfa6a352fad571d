"""Expected failures of the leaf pieces.

* KitError
  - Busy
  - DatabaseUnavailable, DatabaseConflict
  - MalformedId
  - ContentUnreadable
  - UnknownContentKey
  - NotJson, BodyTooLarge, BodyTooSlow, MalformedJson, MalformedRequest
"""

from typing import ClassVar


class KitError(Exception):
    """Base of every expected failure in `app.kit`."""

    code: ClassVar[str]


class Busy(KitError):
    """The gateway's queue is full or it is shutting down; nothing was taken or charged."""

    code = "busy"

    def __init__(self, *, queued: int, retry_after_seconds: int = 1) -> None:
        super().__init__(f"{queued} items already wait; try again in {retry_after_seconds} s")
        self.queued = queued
        self.retry_after_seconds = retry_after_seconds


class DatabaseUnavailable(KitError):
    """The database gave no answer in time; what was asked may or may not have been done.

    Asking for the same again is safe: an acceptance is taken once, and its first answer returned.
    """

    code = "database-unavailable"
    retry_after_seconds = 2

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; send the same again, it is not done twice")
        self.reason = reason


class DatabaseConflict(KitError):
    """The database undid this because it met others' work too often; nothing was done."""

    code = "database-conflict"
    retry_after_seconds = 1


class MalformedId(KitError):
    """An identifier is not the expected prefix followed by a lower-case UUID."""

    code = "malformed-id"

    def __init__(self, *, expected_prefix: str) -> None:
        super().__init__(f"an id of the form {expected_prefix}_<uuid> is expected here")
        self.expected_prefix = expected_prefix


class ContentUnreadable(KitError):
    """Stored content does not decrypt: it was altered or belongs to another job."""

    code = "content-unreadable"


class UnknownContentKey(KitError):
    """Stored content was sealed with a key that this gateway does not hold."""

    code = "unknown-content-key"

    def __init__(self, *, key_id: str) -> None:
        super().__init__(f"no content key {key_id} is loaded")
        self.key_id = key_id


class NotJson(KitError):
    """The body must be sent as application/json."""

    code = "not-json"


class BodyTooLarge(KitError):
    """The body is larger than this gateway reads."""

    code = "body-too-large"

    def __init__(self, *, limit_bytes: int) -> None:
        super().__init__(f"at most {limit_bytes} bytes are read")
        self.limit_bytes = limit_bytes


class BodyTooSlow(KitError):
    """The body did not arrive in time."""

    code = "body-too-slow"

    def __init__(self, *, limit_seconds: int) -> None:
        super().__init__(f"a body must be complete within {limit_seconds} s")
        self.limit_seconds = limit_seconds


class MalformedJson(KitError):
    """The body is not a JSON document."""

    code = "malformed-json"


class MalformedRequest(KitError):
    """The request has a missing, unknown or wrong field; `field` says which."""

    code = "malformed-request"

    def __init__(self, *, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason
