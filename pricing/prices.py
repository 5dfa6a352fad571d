"""Three prices that belong together: what a floor and the rates of a quote both are."""

from dataclasses import dataclass, fields

from ledger.money import Nano
from pricing.units import checked_amount


@dataclass(frozen=True, slots=True)
class Prices:
    """Two rates in nano per 10^6 tokens, one amount in nano.

    All three are above zero and fit the ledger's amounts, else AmountOutOfRange.
    """

    input_rate: Nano
    output_rate: Nano
    per_request: Nano

    def __post_init__(self) -> None:
        """Raise AmountOutOfRange on a price of zero, below it, or above 2^63 - 1."""
        for field in fields(self):
            checked_amount(field.name, getattr(self, field.name))
