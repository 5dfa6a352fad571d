"""What one attempt needs to know about its lease, job and deployment. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from ledger.money import Nano
from pricing.rates import Rates
from pricing.units import ceil_div

ACCRUAL_FACTOR_PER_MILLE = 1500
"""A supplier is paid for at most 1.5 x the slot time that its own speeds make of the tokens; a
slower speed than prices rest on is its own loss, for nobody but the supplier vouches for it."""


@dataclass(frozen=True, slots=True)
class SlotSpeeds:
    """Tokens per second of one slot, as the deployment's offer says; at least 1."""

    prefill: int
    decode: int

    def expected_ms(self, *, input_tokens: int, output_tokens: int, per_mille: int = 1000) -> int:
        """Return the slot time these tokens take, times per_mille / 1000, rounded up to 1 ms."""
        exact = per_mille * (input_tokens * self.decode + output_tokens * self.prefill)
        return ceil_div(exact, self.prefill * self.decode)

    def at_least(self, least: "SlotSpeeds") -> "SlotSpeeds":
        """Return these speeds, or `least` where they are slower."""
        return SlotSpeeds(max(self.prefill, least.prefill), max(self.decode, least.decode))

    def accrual_cap_ms(self, *, input_tokens: int, output_tokens: int) -> int:
        """Return the most slot time that is paid for these tokens, in ms."""
        return self.expected_ms(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            per_mille=ACCRUAL_FACTOR_PER_MILLE,
        )


@dataclass(frozen=True, slots=True)
class ServedRelease:
    """An approved release as dispatch needs it: fingerprint in hex, and its token counter."""

    id: str
    fingerprint: str
    count_text: Callable[[str], int]
    priced: SlotSpeeds = SlotSpeeds(1, 1)
    """The speeds that its prices rest on: no supplier is paid for being slower."""


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
    deadline: float
    """On this process's monotonic clock."""
