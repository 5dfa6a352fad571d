"""Errors from making, checking and using quotes.

* QuoteError
  - BadSchema, PromptTooLong                      the request cannot be served
  - QuoteForged, RequestMismatch, QuoteExpired    the acceptance does not fit the quote
"""

from datetime import datetime
from typing import ClassVar


class QuoteError(Exception):
    """Base of every expected quote failure."""

    code: ClassVar[str]


class BadSchema(QuoteError):
    """The response format's JSON schema is invalid, too large, or not enforced by the engine."""

    code = "bad-schema"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PromptTooLong(QuoteError):
    """The prompt has more tokens than this gateway takes, whatever the model's context."""

    code = "prompt-too-long"

    def __init__(self, *, input_tokens: int, limit_tokens: int) -> None:
        super().__init__(f"prompt of {input_tokens} tokens; at most {limit_tokens} are taken")
        self.input_tokens = input_tokens
        self.limit_tokens = limit_tokens


class QuoteForged(QuoteError):
    """The quote was not signed by this gateway's quote key for these figures."""

    code = "quote-forged"


class RequestMismatch(QuoteError):
    """Request, quote and authorization do not say the same; `field` names the difference."""

    code = "request-mismatch"

    def __init__(self, *, field: str) -> None:
        super().__init__(f"{field} differs from what was quoted")
        self.field = field


class QuoteExpired(QuoteError):
    """The quote's prices no longer hold; ask for a new one."""

    code = "quote-expired"

    def __init__(self, *, expired_at: datetime) -> None:
        super().__init__(f"expired at {expired_at.isoformat()}")
        self.expired_at = expired_at
