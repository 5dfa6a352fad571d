"""Whether an agent's CAPACITY may be offered, and in what form it is stored. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from app.dispatch.session_repository import Offer
from app.dispatch.work import ServedRelease
from app.kit.clock import from_unix_seconds, unix_seconds
from supplier_agent.protocol import Capacity

LONGEST_OFFER = timedelta(days=366)
MAX_DEPLOYMENTS = 64
"""Deployments of one agent."""
PPM = 1_000_000


def refusal(
    capacity: Capacity, releases: Mapping[str, ServedRelease], *, known: bool, deployments: int
) -> str:
    """Return why this is not offered, in words for the owner; empty when it is."""
    release = releases.get(capacity.release)
    if release is None:
        return f"{capacity.release} is not an approved model release"
    if release.fingerprint != capacity.release_fingerprint:
        return f"{capacity.release} is served in another form than the approved one"
    if capacity.ask_nano_per_slot_second <= 0:
        return "the asking price must be above zero"
    if not known and deployments >= MAX_DEPLOYMENTS:
        return f"an agent may have at most {MAX_DEPLOYMENTS} deployments"
    return ""


def offer_of(capacity: Capacity, *, now: datetime) -> Offer:
    """Return an offer as it is stored; speeds rounded to whole tokens per second, at least 1."""
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
        prefill=max(1, round(capacity.prefill_tokens_per_second)),
        decode=max(1, round(capacity.decode_tokens_per_second)),
        gpu_ppm=None if activity is None else round(activity * PPM),
    )
