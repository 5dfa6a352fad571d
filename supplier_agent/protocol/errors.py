"""The base of everything the channel may refuse.

* ProtocolError
  - BadFrame (bytes that are no message of this protocol)
  - BadHello (a hello that proves no key)
  - MalformedStream (an engine stream that is not a success)
"""

from typing import ClassVar


class ProtocolError(Exception):
    """Base of every expected protocol failure."""

    code: ClassVar[str]
    """Stable identifier for this failure."""


class BadFrame(ProtocolError):
    """Bytes from the other side that are no message of this protocol version."""

    code = "bad-frame"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
