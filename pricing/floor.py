"""The cost floor: what tokens of a release have really cost, below which no quote goes."""

from dataclasses import dataclass, fields
from fractions import Fraction

from ledger.money import Nano
from pricing.errors import BadCosts
from pricing.prices import Prices
from pricing.units import (
    PPM,
    TOKENS_PER_RATE,
    ceil_div,
    check_margin,
    check_speed,
    check_tokens,
)

PRIOR_WEIGHT = 50
"""How many typical requests the configured prior counts as."""
MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class CostTotals:
    """What serving cost and what it was billed for: sums over a window, or one typical request.

    Nothing is negative, else BadCosts. All zero is a window in which nothing ran.
    """

    supplier_nano: int
    """Asks times occupied slot-seconds of completed work."""
    overhead_nano: int
    """Serving and payment overhead: gateway cost and gas of all requests."""
    failed_nano: int
    """What work that was not billed cost, whoever's fault it was."""
    input_tokens: int
    """Billed, as output_tokens and requests are."""
    output_tokens: int
    requests: int
    prefill_us: int
    """Measured time of completed work until its first token, in microseconds of a slot."""
    decode_us: int
    """Measured time of completed work after its first token."""

    def __post_init__(self) -> None:
        """Raise BadCosts on a negative total."""
        for field in fields(self):
            value: int = getattr(self, field.name)
            if value < 0:
                raise BadCosts(field=field.name, value=value)


NOTHING_MEASURED = CostTotals(0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens per second of one slot, exact, above zero (else BadSpeed)."""

    prefill: Fraction
    decode: Fraction

    def __post_init__(self) -> None:
        """Raise BadSpeed on a speed of zero or less."""
        check_speed("prefill", self.prefill)
        check_speed("decode", self.decode)


@dataclass(frozen=True, slots=True)
class Floor(Prices):
    """Lowest prices of a release."""


def typical_request(
    tokens: tuple[int, int], speeds: Speeds, *, ask_nano: int, overhead_nano: int
) -> CostTotals:
    """Return a prior: the costs of one typical request, served without failures.

    Args:
        tokens: Its input and output tokens, each at least 1.
        speeds: At which one slot serves it.
        ask_nano: What its supplier asks per slot-second.
        overhead_nano: Gateway and payment cost of one request.

    Raises:
        BadTokens, BadCosts: a count or a cost is not above zero or too large.
    """
    input_tokens, output_tokens = tokens
    check_tokens("input_tokens", input_tokens)
    check_tokens("output_tokens", output_tokens)
    prefill_us = _ceil(input_tokens * MICROSECONDS / speeds.prefill)
    decode_us = _ceil(output_tokens * MICROSECONDS / speeds.decode)
    prior = CostTotals(
        supplier_nano=ceil_div(ask_nano * (prefill_us + decode_us), MICROSECONDS),
        overhead_nano=overhead_nano,
        failed_nano=0,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        requests=1,
        prefill_us=prefill_us,
        decode_us=decode_us,
    )
    _check_prior(prior)
    return prior


def blend(prior: CostTotals, measured: CostTotals) -> CostTotals:
    """Return prior x 50 + measured, total by total.

    With nothing measured the prior alone speaks; every measured request moves the result by
    its own weight only, so there is no cliff, and no total that is divided by can be zero.

    Raises:
        BadCosts: a total of the prior other than `failed_nano` is zero.
    """
    _check_prior(prior)
    return CostTotals(
        **{
            field.name: PRIOR_WEIGHT * getattr(prior, field.name) + getattr(measured, field.name)
            for field in fields(CostTotals)
        }
    )


def cost_floor(prior: CostTotals, measured: CostTotals, *, margin_ppm: int) -> Floor:
    """Return the floor: blended cost over blended tokens and requests, plus margin, rounded up.

    Supplier and failed cost is slot time, so it is split between input and output tokens by
    prefill and decode time. Overhead does not grow with tokens and is the per-request part.

    Args:
        prior: One typical request; it counts PRIOR_WEIGHT times.
        measured: Totals of the trailing window.
        margin_ppm: On top of cost, 0 to MAX_MARGIN_PPM.

    Raises:
        BadCosts: the prior has a zero total. BadMargin: the margin is out of range.
        AmountOutOfRange: a floor above 2^63 - 1 nano.

    Source:
        Design, "Price": (prior x 50 + measured) / (prior tokens x 50 + billed).
    """
    check_margin(margin_ppm)
    total = blend(prior, measured)
    slot_nano = (total.supplier_nano + total.failed_nano) * (PPM + margin_ppm)
    slot_us = total.prefill_us + total.decode_us

    def rate(share_us: int, tokens: int) -> Nano:
        return Nano(ceil_div(slot_nano * share_us * TOKENS_PER_RATE, slot_us * tokens * PPM))

    return Floor(
        input_rate=rate(total.prefill_us, total.input_tokens),
        output_rate=rate(total.decode_us, total.output_tokens),
        per_request=Nano(ceil_div(total.overhead_nano * (PPM + margin_ppm), total.requests * PPM)),
    )


def blended_speeds(prior: CostTotals, measured: CostTotals) -> Speeds:
    """Return the speeds that the same blend implies, for `covered_ask` and `run_seconds`.

    Exact, so that an ask equal to the measured cost of a slot-second stays covered.
    """
    total = blend(prior, measured)
    return Speeds(
        prefill=Fraction(total.input_tokens * MICROSECONDS, total.prefill_us),
        decode=Fraction(total.output_tokens * MICROSECONDS, total.decode_us),
    )


def _check_prior(prior: CostTotals) -> None:
    for field in fields(prior):
        value: int = getattr(prior, field.name)
        if value == 0 and field.name != "failed_nano":
            raise BadCosts(field=f"prior.{field.name}", value=value)


def _ceil(value: Fraction) -> int:
    return ceil_div(value.numerator, value.denominator)
