"""Why a check stops: the receipt is refused, or something else that was given cannot be used."""

from typing import ClassVar


class Refused(Exception):
    """A step does not hold. What it says is for people; the step's name is for machines."""


class Unusable(Exception):
    """A file or option that the reader gave cannot be used: exit code 64."""

    code: ClassVar[str] = "unusable"


class BadPolicy(Unusable):
    """A policy breaks a rule; carries the line, 0 where the whole file does."""

    code = "bad-policy"

    def __init__(self, line: int, reason: str) -> None:
        where = f"policy, line {line}" if line else "policy"
        super().__init__(f"{where}: {reason}")
        self.line = line
        self.reason = reason


class ChainTrouble(Exception):
    """A node of the chain gave no usable answer, or two disagree: nothing follows from it."""
