"""Units and limits of every price, and the two checks all of them share."""

from fractions import Fraction

from ledger.money import MAX_NANO, Nano
from pricing.errors import AmountOutOfRange, BadMargin, BadSpeed, BadTokens

PPM = 1_000_000
TOKENS_PER_RATE = 1_000_000
"""A rate is nano per this many tokens."""
MAX_TOKENS = 10**12
"""No request, ceiling or usage may count more tokens than this."""
MAX_MARGIN_PPM = 10 * PPM


def ceil_div(numerator: int, denominator: int) -> int:
    """Return the quotient rounded up."""
    return -(-numerator // denominator)


def checked_amount(field: str, amount: int) -> Nano:
    """Return the amount as Nano if it is above zero and fits a 64-bit ledger amount.

    Raises:
        AmountOutOfRange: it does not; a zero or negative price is never a sentinel.
    """
    if not 0 < amount <= MAX_NANO:
        raise AmountOutOfRange(field=field, amount=amount)
    return Nano(amount)


def check_tokens(field: str, tokens: int) -> None:
    """Raise BadTokens unless the count is 0 to MAX_TOKENS."""
    if not 0 <= tokens <= MAX_TOKENS:
        raise BadTokens(field=field, tokens=tokens, limit=MAX_TOKENS)


def check_margin(margin_ppm: int) -> None:
    """Raise BadMargin unless the margin is 0 to MAX_MARGIN_PPM."""
    if not 0 <= margin_ppm <= MAX_MARGIN_PPM:
        raise BadMargin(margin_ppm=margin_ppm, limit_ppm=MAX_MARGIN_PPM)


def check_speed(field: str, speed: Fraction) -> None:
    """Raise BadSpeed unless the speed is above zero."""
    if speed <= 0:
        raise BadSpeed(field=field)
