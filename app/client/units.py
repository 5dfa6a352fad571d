"""Base units of the token, which the chain counts, and the decimal numbers that people read."""

from decimal import Decimal

from app.client.errors import NotBaseUnits
from ledger.money import NANO_PER_BASE_UNIT, WEI_PER_COIN, Nano, format_amount


def base_units(amount: Nano) -> int:
    """Return an amount in base units of the token.

    Raises:
        NotBaseUnits: it is finer than the token, or not above zero.
    """
    if amount <= 0 or amount % NANO_PER_BASE_UNIT:
        raise NotBaseUnits(format_amount(amount))
    return amount // NANO_PER_BASE_UNIT


def token_text(base: int) -> str:
    """Return base units as a decimal number of tokens."""
    return format_amount(Nano(base * NANO_PER_BASE_UNIT))


def coin_text(wei: int) -> str:
    """Return wei as a decimal number of native coins, without trailing zeros."""
    return f"{(Decimal(wei) / WEI_PER_COIN).quantize(Decimal(1) / 10**12).normalize():f}"
