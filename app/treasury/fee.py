"""What relaying a withdrawal costs its wallet, in base units of the token."""

from typing import Final

from ledger.money import NANO_PER_BASE_UNIT, WEI_PER_COIN, Nano

WITHDRAW_GAS: Final = 150_000
"""Gas that the fee is reckoned with; a test compares it with what a withdrawal takes."""


def withdrawal_fee(*, gas_price: int, gas_token_price: Nano, gas: int = WITHDRAW_GAS) -> int:
    """Return the fee in base units, rounded up; 0 where gas is given away.

    Args:
        gas_price: Expected price of one unit of gas, in wei.
        gas_token_price: Tokens that one whole native coin costs, in nano; 0 gives gas away.
        gas: Units of gas that a withdrawal takes.
    """
    if gas_token_price == 0:
        return 0
    # wei of gas x (nano per coin / wei per coin) / nano per base unit
    return -(-gas * gas_price * gas_token_price // (WEI_PER_COIN * NANO_PER_BASE_UNIT))


def base_units_up(amount: Nano) -> int:
    """Return the least number of base units that covers an amount."""
    return -(-amount // NANO_PER_BASE_UNIT)


def base_units_down(amount: Nano) -> int:
    """Return how many whole base units an amount holds."""
    return amount // NANO_PER_BASE_UNIT


def nano(base_units: int) -> Nano:
    """Return base units as nano."""
    return Nano(base_units * NANO_PER_BASE_UNIT)
