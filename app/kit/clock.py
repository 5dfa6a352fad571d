"""The wall clock, read here and nowhere else, and the wire form of times."""

import time
from datetime import UTC, datetime

_END_OF_TIME = 253_402_300_799


def utc_now() -> datetime:
    """Return the present, timezone-aware. Decisions about money use the database clock instead."""
    return datetime.now(UTC)  # noqa: TID251 -- the one place that reads it


def unix_ms() -> int:
    """Return milliseconds since 1970, for identifiers."""
    return time.time_ns() // 1_000_000


def unix_seconds(at: datetime) -> int:
    """Return whole seconds since 1970, rounded down, as signed messages carry them."""
    assert at.tzinfo is not None
    return int(at.timestamp() // 1)


def from_unix_seconds(seconds: int) -> datetime:
    """Return the UTC time of a signed message's seconds, at latest the end of the year 9999.

    A signed time may be any uint64, which neither Python nor Postgres can hold.
    """
    return datetime.fromtimestamp(min(seconds, _END_OF_TIME), UTC)


def format_time(at: datetime) -> str:
    """Return RFC 3339 in UTC with milliseconds, `2026-01-02T03:04:05.678Z`."""
    assert at.tzinfo is not None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
