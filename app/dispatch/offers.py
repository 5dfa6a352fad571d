"""Whether an agent's CAPACITY may be offered, and in what form it is stored. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.dispatch.session_repository import Offer
from app.dispatch.work import ServedRelease, SlotSpeeds
from app.kit.clock import from_unix_seconds, unix_seconds
from pricing.units import ceil_div
from supplier_agent.protocol import Capacity

LONGEST_OFFER = timedelta(days=366)
MAX_DEPLOYMENTS = 64
"""Deployments of one agent."""
PPM = 1_000_000
CLAIM_LOWEST_PPM = 250_000
CLAIM_HIGHEST = 100
"""Claimed speeds count as between a quarter and a hundred times the prior's."""


@dataclass(frozen=True, slots=True)
class SpeedLimits:
    """What CAPACITY may say of speeds, measured by the prior's: the price's before any is measured.

    An offer below `slowest_ppm` of a prior speed is refused: it would hold slots and deadlines
    far longer than its tokens are worth.
    """

    prior: SlotSpeeds
    slowest_ppm: int

    def refusal(self, capacity: Capacity) -> str:
        """Return which speed is too slow to be sold, in words; empty when none is."""
        for name, claimed, prior in (
            ("prompt", capacity.prefill_tokens_per_second, self.prior.prefill),
            ("answer", capacity.decode_tokens_per_second, self.prior.decode),
        ):
            if claimed * PPM < prior * self.slowest_ppm:
                least = prior * self.slowest_ppm / PPM
                return (
                    f"{claimed:.3g} {name} tokens per second and slot are too slow; "
                    f"at least {least:g} are sold"
                )
        return ""

    def counted(self, capacity: Capacity) -> SlotSpeeds:
        """Return the speeds that a CAPACITY's claims count as."""
        return SlotSpeeds(
            _counted(capacity.prefill_tokens_per_second, self.prior.prefill),
            _counted(capacity.decode_tokens_per_second, self.prior.decode),
        )


def _counted(claimed: float, prior: int) -> int:
    lowest = ceil_div(prior * CLAIM_LOWEST_PPM, PPM)
    return max(lowest, min(round(claimed), prior * CLAIM_HIGHEST))


@dataclass(frozen=True, slots=True)
class OfferRules:
    """Which releases are sold, at which speeds."""

    releases: Mapping[str, ServedRelease]
    speeds: SpeedLimits


def refusal(capacity: Capacity, rules: OfferRules, *, known: bool, deployments: int) -> str:
    """Return why this is not offered, in words for the owner; empty when it is."""
    release = rules.releases.get(capacity.release)
    if release is None:
        return f"{capacity.release} is not an approved model release"
    if release.fingerprint != capacity.release_fingerprint:
        return f"{capacity.release} is served in another form than the approved one"
    if capacity.ask_nano_per_slot_second <= 0:
        return "the asking price must be above zero"
    if capacity.offered and (too_slow := rules.speeds.refusal(capacity)):
        return too_slow
    if not known and deployments >= MAX_DEPLOYMENTS:
        return f"an agent may have at most {MAX_DEPLOYMENTS} deployments"
    return ""


def offer_of(capacity: Capacity, limits: SpeedLimits, *, now: datetime) -> Offer:
    """Return an offer as it is stored; speeds in whole tokens per second, within the limits."""
    speeds = limits.counted(capacity)
    latest = unix_seconds(now + LONGEST_OFFER)
    activity = capacity.gpu_activity
    return Offer(
        name=capacity.deployment,
        release=capacity.release,
        capacity_class=capacity.capacity_class,
        region=capacity.region,
        ask=capacity.ask_nano_per_slot_second,
        offered=capacity.offered,
        offer_until=from_unix_seconds(min(capacity.offer_until, latest)),
        prefill=speeds.prefill,
        decode=speeds.decode,
        gpu_ppm=None if activity is None else round(activity * PPM),
    )
