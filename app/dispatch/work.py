"""What one attempt needs to know about its lease, job and deployment. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from ledger.money import Nano
from pricing.floor import Speeds
from pricing.rates import Rates
from pricing.units import ceil_div

ACCRUAL_FACTOR_PER_MILLE = 1500
"""A supplier is paid for at most 1.5 x the slot time that the authorized speeds make of tokens."""


@dataclass(frozen=True, slots=True)
class SlotSpeeds:
    """Tokens per second of one slot; at least 1."""

    prefill: int
    decode: int

    def expected_ms(self, *, input_tokens: int, output_tokens: int, per_mille: int = 1000) -> int:
        """Return the slot time these tokens take, times per_mille / 1000, rounded up to 1 ms."""
        exact = per_mille * (input_tokens * self.decode + output_tokens * self.prefill)
        return ceil_div(exact, self.prefill * self.decode)

    def no_slower_than(self, speeds: Speeds) -> "SlotSpeeds":
        """Return these speeds, each raised to that of `speeds` (rounded up) where it is lower."""
        return SlotSpeeds(
            max(self.prefill, math.ceil(speeds.prefill)), max(self.decode, math.ceil(speeds.decode))
        )


@dataclass(frozen=True, slots=True)
class ServedRelease:
    """An approved release as dispatch needs it: fingerprint in hex, and its token counter."""

    id: str
    fingerprint: str
    count_text: Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedWork:
    """What accepting knows of a new lease; the request in the clear, so nothing is read back."""

    lease_id: UUID
    job_id: UUID
    agent_id: UUID
    deployment_id: UUID
    release: str
    input_tokens: int
    max_output_tokens: int
    rates: Rates
    max_charge: Nano
    request_digest: bytes
    salt: bytes
    request: bytes
    """RFC 8785 form, which the digest covers with the salt."""
    remaining_seconds: float
    """Until the job's deadline, at the time this is handed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A lease that this replica runs."""

    accepted: AcceptedWork
    deployment: str
    """The agent's own name for it."""
    speeds: SlotSpeeds
    """As the supplier claims them: how long silence is patience."""
    authorized: SlotSpeeds
    """What slot time is paid by: the claimed speeds, but none slower than the price assumes."""
    deadline: float
    """On this process's monotonic clock."""

    def accrual_cap_ms(self, *, input_tokens: int, output_tokens: int) -> int:
        """Return the most slot time that is paid for these tokens, in ms.

        What a supplier says of its own speed can only lower it: money.md, "Supplier accrual".
        Booking it bounds the pay by the charge besides.
        """
        return self.authorized.expected_ms(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            per_mille=ACCRUAL_FACTOR_PER_MILLE,
        )
