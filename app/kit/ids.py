"""Identifiers: time-ordered UUIDs (version 7, RFC 9562) and their prefixed text forms."""

import re
from collections.abc import Callable
from enum import StrEnum
from uuid import UUID

from app.kit.errors import MalformedId

COUNTER_LIMIT = 1 << 12
"""Ids of one millisecond are told apart and kept in order by the 12 bits of `rand_a`."""

UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class IdPrefix(StrEnum):
    """What an identifier names."""

    JOB = "job"
    QUOTE = "quote"
    LEASE = "lease"
    AGENT = "agent"
    SUPPLIER = "sup"
    DEPLOYMENT = "dep"
    WITHDRAWAL = "wdr"


class IdSource:
    """Makes UUIDv7 identifiers that never go backwards within one process."""

    def __init__(self, *, now_ms: Callable[[], int], random_bytes: Callable[[int], bytes]) -> None:
        """Take the clock (unix milliseconds) and the source of randomness."""
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._last_ms = -1
        self._counter = 0

    def new(self) -> UUID:
        """Return an id greater than every earlier one of this source.

        The counter starts at a random value below 2,048 each millisecond (RFC 9562, 6.2,
        method 1); when it runs out, or the clock steps back, the last millisecond is carried on.
        """
        now_ms = self._now_ms()
        if now_ms > self._last_ms:
            self._last_ms = now_ms
            self._counter = int.from_bytes(self._random_bytes(2)) & 0x7FF
        else:
            self._counter += 1
            if self._counter == COUNTER_LIMIT:
                self._last_ms += 1
                self._counter = 0
        tail = int.from_bytes(self._random_bytes(8)) & ((1 << 62) - 1)
        value = self._last_ms << 80 | 0x7 << 76 | self._counter << 64 | 0b10 << 62 | tail
        return UUID(int=value)


def format_id(prefix: IdPrefix, value: UUID) -> str:
    """Return the wire form, `job_0190...`."""
    return f"{prefix}_{value}"


def parse_id(prefix: IdPrefix, text: str) -> UUID:
    """Read the wire form back.

    Raises:
        MalformedId: another prefix, upper case, or not a UUID.
    """
    head, _, tail = text.partition("_")
    if head != prefix or not UUID_TEXT.fullmatch(tail):
        raise MalformedId(expected_prefix=prefix)
    return UUID(tail)
