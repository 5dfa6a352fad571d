"""Money as integers: nano, 10^-9 of the settlement token.

Floats never hold money. Rates are nano per 10^6 tokens and use the same type.
"""

import re
from typing import ClassVar, NewType

Nano = NewType("Nano", int)
"""An amount in 10^-9 of the settlement token; a rate in the same unit per 10^6 tokens."""

NANO_PER_TOKEN = 10**9
MAX_NANO = 2**63 - 1
"""The largest amount a Postgres bigint holds, about 9.2e9 tokens."""

_AMOUNT = re.compile(r"(0|[1-9][0-9]{0,9})(?:\.([0-9]{1,9}))?")


class BadAmount(ValueError):
    """The text is not an amount: digits, an optional point, at most 9 decimals."""

    code: ClassVar[str] = "bad-amount"

    def __init__(self, text: str) -> None:
        super().__init__(f"not an amount of at most 9 decimals: {text[:40]!r}")
        self.text = text


def parse_amount(text: str) -> Nano:
    """Return the amount a decimal string of the token stands for, exactly.

    Raises:
        BadAmount: sign, exponent, blank, more than 9 decimals, or above MAX_NANO.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BadAmount(text)
    whole, decimals = match.groups()
    amount = int(whole) * NANO_PER_TOKEN + int((decimals or "").ljust(9, "0"))
    if amount > MAX_NANO:
        raise BadAmount(text)
    return Nano(amount)


def format_amount(amount: Nano) -> str:
    """Return the amount as a decimal string of the token, always with 9 decimals."""
    whole, rest = divmod(abs(amount), NANO_PER_TOKEN)
    return f"{'-' if amount < 0 else ''}{whole}.{rest:09d}"
