"""The three prices of a quote, the ask they cover, and how long they may hold a slot.

Start reading here: `rates_for` puts floor, curve and load together.
"""

from dataclasses import dataclass
from fractions import Fraction

from ledger.money import MAX_NANO, Nano
from pricing.curve import Curve
from pricing.errors import RunTooLong
from pricing.floor import Floor
from pricing.prices import Prices
from pricing.units import (
    PPM,
    TOKENS_PER_RATE,
    ceil_div,
    check_margin,
    check_speed,
    check_tokens,
)

RUN_SLACK = 3
"""Two attempts and a slow neighbour fit into one deadline."""
RUN_OVERHEAD_SECONDS = 10
"""Dispatch, and twice the longest wait for another slot."""
MIN_RUN_SECONDS = 20
MAX_RUN_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Rates(Prices):
    """Prices of one request."""


def rates_for(floor: Floor, curve: Curve, load_ppm: int) -> Rates:
    """Return floor x max(1, curve(load)), each price rounded up, so never below the floor.

    Raises:
        BadLoad: the load is outside 0 to 1,000,000 ppm.
        AmountOutOfRange: a price above 2^63 - 1 nano.
    """
    multiplier = max(PPM, curve.multiplier_ppm(load_ppm))
    return Rates(
        input_rate=Nano(ceil_div(floor.input_rate * multiplier, PPM)),
        output_rate=Nano(ceil_div(floor.output_rate * multiplier, PPM)),
        per_request=Nano(ceil_div(floor.per_request * multiplier, PPM)),
    )


def covered_ask(
    rates: Rates,
    prefill_tokens_per_second: int | Fraction,
    decode_tokens_per_second: int | Fraction,
    margin_ppm: int,
) -> Nano:
    """Return the dearest supplier ask these rates cover, in nano per slot-second, rounded down.

    A slot-second of nothing but input earns prefill speed x input rate, one of nothing but
    output decode speed x output rate; what the poorer of the two leaves after the margin is
    covered for any mix. The per-request part is not counted: it pays for overhead. May be 0.

    Raises:
        BadSpeed: a speed is not above zero. BadMargin: the margin is out of range.
    """
    check_speed("prefill_tokens_per_second", Fraction(prefill_tokens_per_second))
    check_speed("decode_tokens_per_second", Fraction(decode_tokens_per_second))
    check_margin(margin_ppm)
    earned = min(
        Fraction(prefill_tokens_per_second) * rates.input_rate,
        Fraction(decode_tokens_per_second) * rates.output_rate,
    )
    ask = earned * PPM / (TOKENS_PER_RATE * (PPM + margin_ppm))
    return Nano(min(ask.numerator // ask.denominator, MAX_NANO))


def ask_at(floor_ask: Nano, curve: Curve, load_ppm: int) -> Nano:
    """Return the dearest ask that `rates_for` covers, given the one that the floor covers.

    Rounded down, as the rates are rounded up.

    Raises:
        BadLoad: the load is outside 0 to 1,000,000 ppm.
    """
    multiplier = max(PPM, curve.multiplier_ppm(load_ppm))
    return Nano(min(floor_ask * multiplier // PPM, MAX_NANO))


def run_seconds(
    input_tokens: int,
    max_output_tokens: int,
    prefill_tokens_per_second: int | Fraction,
    decode_tokens_per_second: int | Fraction,
) -> int:
    """Return how long a job may run, in whole seconds, from its acceptance to its deadline.

    Rule: 10 s + 3 x (time for the whole prompt and the whole ceiling at measured speed),
    rounded up, at least 20 s.

    Raises:
        BadTokens, BadSpeed: an argument is out of range.
        RunTooLong: more than 24 hours.
    """
    check_tokens("input_tokens", input_tokens)
    check_tokens("max_output_tokens", max_output_tokens)
    check_speed("prefill_tokens_per_second", Fraction(prefill_tokens_per_second))
    check_speed("decode_tokens_per_second", Fraction(decode_tokens_per_second))
    expected = Fraction(input_tokens) / Fraction(prefill_tokens_per_second)
    expected += Fraction(max_output_tokens) / Fraction(decode_tokens_per_second)
    slack = ceil_div(RUN_SLACK * expected.numerator, expected.denominator)
    seconds = max(MIN_RUN_SECONDS, RUN_OVERHEAD_SECONDS + slack)
    if seconds > MAX_RUN_SECONDS:
        raise RunTooLong(seconds=seconds, limit_seconds=MAX_RUN_SECONDS)
    return seconds
