"""From tokens to money: the most a request may cost, and what its measured usage costs."""

from dataclasses import dataclass, fields

from ledger.money import Nano
from pricing.errors import BadUsage
from pricing.rates import Rates
from pricing.units import TOKENS_PER_RATE, ceil_div, check_tokens, checked_amount


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one request. Cached is part of input and reasoning part of output.

    The parts are shown, never added: a token is billed once, as input or as output. Raises
    BadTokens on a count outside 0 to MAX_TOKENS and BadUsage on a part above its whole.
    """

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int

    def __post_init__(self) -> None:
        """Check ranges and the two subset rules."""
        for field in fields(self):
            check_tokens(field.name, getattr(self, field.name))
        for part, part_tokens, whole_tokens in (
            ("cached_input_tokens", self.cached_input_tokens, self.input_tokens),
            ("reasoning_tokens", self.reasoning_tokens, self.output_tokens),
        ):
            if part_tokens > whole_tokens:
                raise BadUsage(part=part, part_tokens=part_tokens, whole_tokens=whole_tokens)


def max_charge(rates: Rates, input_tokens: int, max_output_tokens: int) -> Nano:
    """Return the most a request within the ceiling can cost, in nano, rounded up once.

    Raises:
        BadTokens: a count outside 0 to MAX_TOKENS.
        AmountOutOfRange: the amount does not fit the ledger; nothing wraps around.
    """
    check_tokens("input_tokens", input_tokens)
    check_tokens("max_output_tokens", max_output_tokens)
    amount = ceil_div(_exact(rates, input_tokens, max_output_tokens), TOKENS_PER_RATE)
    return checked_amount("max_charge", amount)


def charge_for(usage: TokenUsage, rates: Rates, max_charge: Nano) -> Nano:
    """Return what measured usage costs, in nano, rounded down once and never above max_charge.

    The three parts are added before the one division, so a fraction of a nano stays with the
    buyer.

    Raises:
        AmountOutOfRange: max_charge itself is no amount of the ledger.
    """
    checked_amount("max_charge", max_charge)
    exact = _exact(rates, usage.input_tokens, usage.output_tokens)
    return Nano(min(exact // TOKENS_PER_RATE, max_charge))


def _exact(rates: Rates, input_tokens: int, output_tokens: int) -> int:
    """Return the price in nano x 10^6, exact."""
    return (
        rates.per_request * TOKENS_PER_RATE
        + input_tokens * rates.input_rate
        + output_tokens * rates.output_rate
    )
