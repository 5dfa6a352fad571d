"""How a check ended: the exit codes, and which one speaks for several receipts."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """The exit codes of `offpeak-verify`."""

    VERIFIED = 0
    INVALID = 1
    PENDING = 2
    NOT_ANCHORED = 3
    OVERDUE = 4
    UNCHECKED = 5
    USAGE = 64


MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.VERIFIED: "verified: every step that could be checked holds",
    Exit.INVALID: "invalid: a step is refused, or what was given is no receipt",
    Exit.PENDING: "signed, but not yet included in the log",
    Exit.NOT_ANCHORED: "included, but not known to be anchored (only with --require anchored)",
    Exit.OVERDUE: "overdue: its time to be included has passed (only with --fresh)",
    Exit.UNCHECKED: "all else holds, but a contract wallet's signature could not be checked",
    Exit.USAGE: "usage: an option, a file or the policy cannot be used",
}

_WORST_FIRST: Final = (
    Exit.INVALID,
    Exit.USAGE,
    Exit.OVERDUE,
    Exit.UNCHECKED,
    Exit.PENDING,
    Exit.NOT_ANCHORED,
)


def worst(exits: Iterable[Exit]) -> Exit:
    """The one that speaks for all: evidence against somebody first."""
    found = set(exits)
    return next((each for each in _WORST_FIRST if each in found), Exit.VERIFIED)
