from datetime import UTC, datetime

import msgspec
import pytest

from app.dispatch.offers import (
    MAX_DEPLOYMENTS,
    OfferRules,
    SpeedLimits,
    offer_of,
    refusal,
)
from app.dispatch.session_repository import Offer
from app.dispatch.work import SlotSpeeds
from supplier_agent.protocol import Capacity
from tests.unit.dispatch.samples import RELEASE

LIMITS = SpeedLimits(SlotSpeeds(300, 20), slowest_ppm=50_000)
RULES = OfferRules({RELEASE.id: RELEASE}, LIMITS)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CAPACITY = Capacity(
    deployment="gpu0",
    release=RELEASE.id,
    release_fingerprint=RELEASE.fingerprint,
    capacity_class="flexible",
    region="local",
    ask_nano_per_slot_second=1,
    offered=4,
    offer_until=1_790_000_000,
    prefill_tokens_per_second=312.2,
    decode_tokens_per_second=20.6,
    gpu_activity=0.5,
)


def test_an_approved_release_at_a_price_may_be_offered() -> None:
    assert refusal(CAPACITY, RULES, known=False, deployments=0) == ""


@pytest.mark.parametrize(
    "change",
    [{"release": "other"}, {"release_fingerprint": "00" * 32}, {"ask_nano_per_slot_second": 0}],
)
def test_anything_else_is_refused_in_words(change: dict[str, object]) -> None:
    assert refusal(msgspec.structs.replace(CAPACITY, **change), RULES, known=True, deployments=1)


def test_the_number_of_deployments_is_limited() -> None:
    assert refusal(CAPACITY, RULES, known=False, deployments=MAX_DEPLOYMENTS)
    assert not refusal(CAPACITY, RULES, known=True, deployments=MAX_DEPLOYMENTS)


def offered(**change: object) -> Offer:
    return offer_of(msgspec.structs.replace(CAPACITY, **change), LIMITS, now=NOW)


def test_speeds_are_whole_and_an_offer_ends_within_a_year() -> None:
    offer = offered(offer_until=2**53 - 1)
    assert (offer.prefill, offer.decode, offer.gpu_ppm) == (312, 21, 500_000)
    assert offer.offer_until.year == 2027


def test_claimed_speeds_count_between_a_quarter_and_a_hundred_times_the_priors() -> None:
    slow = offered(prefill_tokens_per_second=16.0, decode_tokens_per_second=1.0)
    assert (slow.prefill, slow.decode) == (75, 5)
    fast = offered(prefill_tokens_per_second=1e9, decode_tokens_per_second=1e9)
    assert (fast.prefill, fast.decode) == (30_000, 2_000)


@pytest.mark.parametrize(
    ("speed", "words"),
    [("prefill", "14 prompt tokens"), ("decode", "0.9 answer tokens")],
)
def test_a_slot_too_slow_to_sell_is_refused_unless_nothing_is_on_offer(
    speed: str, words: str
) -> None:
    claimed = {"prefill": 14.0, "decode": 0.9}[speed]
    slow = msgspec.structs.replace(CAPACITY, **{f"{speed}_tokens_per_second": claimed})
    assert words in refusal(slow, RULES, known=True, deployments=1)
    assert not refusal(msgspec.structs.replace(slow, offered=0), RULES, known=True, deployments=1)


def test_paid_slot_time_is_at_most_one_and_a_half_times_the_expected() -> None:
    speeds = SlotSpeeds(300, 20)
    assert speeds.expected_ms(input_tokens=300, output_tokens=20) == 2_000
    assert speeds.accrual_cap_ms(input_tokens=300, output_tokens=20) == 3_000
    assert speeds.accrual_cap_ms(input_tokens=1, output_tokens=0) == 5
