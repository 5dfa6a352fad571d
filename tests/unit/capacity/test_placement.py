from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.capacity.placement import MAX_CANDIDATES, DeploymentOffer, candidates
from ledger.money import Nano


def offer(
    number: int,
    *,
    offered: int = 4,
    occupied: int = 0,
    ask: int = 10,
    kind: str = "flexible",
    release: str = "m",
) -> DeploymentOffer:
    return DeploymentOffer(
        id=UUID(int=number),
        release=release,
        region="local",
        capacity_class=kind,
        ask=Nano(ask),
        offered=offered,
        occupied=occupied,
        prefill=300,
        decode=20,
    )


def order(*offers: DeploymentOffer, taken: dict[int, int] | None = None) -> list[int]:
    found = candidates(
        offers,
        {UUID(int=number): slots for number, slots in (taken or {}).items()},
        release="m",
        region="local",
        ask_ceiling=Nano(100),
    )
    return [deployment.int for deployment in found]


def test_the_least_loaded_comes_first() -> None:
    assert order(offer(1, occupied=2), offer(2, occupied=1), offer(3, offered=8, occupied=1)) == [
        3,
        2,
        1,
    ]


def test_slots_given_out_since_the_view_was_read_count_as_load() -> None:
    assert order(offer(1), offer(2), taken={1: 1}) == [2, 1]


def test_flexible_capacity_comes_before_reclaimable_and_cheap_before_dear() -> None:
    assert order(offer(1, kind="reclaimable"), offer(2, ask=20), offer(3)) == [3, 2, 1]


def test_too_dear_other_and_withdrawn_offers_are_not_asked() -> None:
    assert order(offer(1, ask=101), offer(2, release="other"), offer(3, offered=0), offer(4)) == [4]


def test_a_full_deployment_is_tried_last() -> None:
    assert order(offer(1, occupied=4), offer(2, occupied=3)) == [2, 1]


@given(st.lists(st.integers(0, 4), max_size=60))
def test_at_most_so_many_are_tried_and_none_twice(occupied: list[int]) -> None:
    found = order(*(offer(n, occupied=o) for n, o in enumerate(occupied)))
    assert len(found) == min(len(occupied), MAX_CANDIDATES)
    assert len(set(found)) == len(found)
