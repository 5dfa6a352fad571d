"""Money as integers.

Every amount in this code base is a whole number of nano: 10^-9 of the settlement token.
Floats never hold money. On the wire an amount is a decimal string of the token. Rates are
nano per 10^6 tokens of text.
"""

import re
from typing import Final, NewType

from ledger.errors import BadAmount

Nano = NewType("Nano", int)
"""An amount in 10^-9 of the settlement token, or a rate in nano per 10^6 tokens of text."""

ZERO: Final = Nano(0)
DECIMALS: Final = 9
NANO_PER_TOKEN: Final = 10**DECIMALS
NANO_PER_BASE_UNIT: Final = 1_000
"""The token has 6 decimals (USDC), nano 9."""
WEI_PER_COIN: Final = 10**18
"""A native coin, which pays for gas, has 18 decimals; it is never in the ledger."""
MAX_NANO: Final = 2**63 - 1
"""The most a Postgres bigint holds: about 9.2e9 tokens."""
RATE_UNIT: Final = 10**6
"""A rate is the price of this many tokens of text."""

_AMOUNT = re.compile(r"([0-9]{1,19})(?:\.([0-9]{1,9}))?")


def parse_amount(text: str) -> Nano:
    """The amount that `text` writes as a decimal number of the token.

    ASCII digits, optionally a point and one to nine decimals; no sign, exponent, space or
    separator. More than nine decimals is refused rather than rounded.

    Raises:
        BadAmount: any other form, or more than `MAX_NANO`.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BadAmount(text, "digits, optionally a point and one to nine decimals")
    whole, decimals = match.groups(default="")
    nano = int(whole) * NANO_PER_TOKEN + int(decimals.ljust(DECIMALS, "0"))
    if nano > MAX_NANO:
        raise BadAmount(text, f"more than {MAX_NANO} nano")
    return Nano(nano)


def format_amount(amount: Nano) -> str:
    """The amount as a decimal string of the token, always with nine decimals.

    A negative amount (a difference in a report) keeps its sign; `parse_amount` refuses it.
    """
    sign = "-" if amount < 0 else ""
    whole, decimals = divmod(abs(amount), NANO_PER_TOKEN)
    return f"{sign}{whole}.{decimals:0{DECIMALS}d}"
