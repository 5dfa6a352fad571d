"""From booked sums to the cost totals that a floor is computed from. Pure."""

from dataclasses import dataclass
from fractions import Fraction

from ledger.money import Nano
from pricing.floor import CostTotals, Speeds, typical_request

MICROSECONDS_PER_MS = 1_000


@dataclass(frozen=True, slots=True)
class PriorCost:
    """The typical request that stands in for cost until enough is measured."""

    input_tokens: int
    output_tokens: int
    prefill_tokens_per_second: int
    decode_tokens_per_second: int
    ask: Nano
    overhead: Nano

    def totals(self) -> CostTotals:
        """Return the prior as the pricing package takes it."""
        return typical_request(
            (self.input_tokens, self.output_tokens),
            Speeds(
                Fraction(self.prefill_tokens_per_second), Fraction(self.decode_tokens_per_second)
            ),
            ask_nano=self.ask,
            overhead_nano=self.overhead,
        )


@dataclass(frozen=True, slots=True)
class BookedSums:
    """Sums over one release's usage records and cost entries in the trailing window."""

    requests: int
    input_tokens: int
    output_tokens: int
    served_nano: int
    served_slot_ms: int
    failed_nano: int


def measured_totals(booked: BookedSums, prior: PriorCost) -> CostTotals:
    """Return the window's totals.

    A lease books one slot time. It is split between prefill and decode in the proportion that the
    billed tokens take at the prior's speeds; only the ratio of the two speeds is assumed, the
    total is measured. Overhead is booked at the prior's figure per request. Each lease's cost was
    rounded down when it was booked, so a nano is added for each: the floor is never below cost.
    """
    prefill = Fraction(booked.input_tokens, prior.prefill_tokens_per_second)
    decode = Fraction(booked.output_tokens, prior.decode_tokens_per_second)
    slot_us = booked.served_slot_ms * MICROSECONDS_PER_MS
    prefill_us = int(slot_us * prefill / (prefill + decode)) if prefill + decode else 0
    return CostTotals(
        supplier_nano=booked.served_nano + booked.requests,
        overhead_nano=prior.overhead * booked.requests,
        failed_nano=booked.failed_nano,
        input_tokens=booked.input_tokens,
        output_tokens=booked.output_tokens,
        requests=booked.requests,
        prefill_us=prefill_us,
        decode_us=slot_us - prefill_us,
    )
