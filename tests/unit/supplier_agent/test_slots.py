"""The slot table never gives one slot twice, and forgets nothing before its time."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from supplier_agent.slots import LeaseState, Limits, NoSlot, SlotTable
from tests.unit.supplier_agent.samples import new_lease

SLOTS = 3
KEEP_BYTES = 1000
KEEP_SECONDS = 60.0


def table() -> SlotTable:
    return SlotTable(Limits(slots=SLOTS, keep_bytes=KEEP_BYTES, keep_seconds=KEEP_SECONDS))


def take(slots: SlotTable, lease: str, *, now: float = 0.0, ceiling: int = 100) -> int:
    return slots.take(lease, now=now, remaining_seconds=10.0, ceiling_bytes=ceiling)


class SlotModel(RuleBasedStateMachine):
    """Plays any order of events against a plain list of who has which slot."""

    running = Bundle("running")
    stopping = Bundle("stopping")
    ended = Bundle("ended")

    def __init__(self) -> None:
        super().__init__()
        self.table = table()
        self.now = 0.0
        self.slots: dict[str, int] = {}
        self.kept: dict[str, float] = {}
        self.unwanted: set[str] = set()

    @rule(target=running, ceiling=st.integers(0, 400))
    def run(self, ceiling: int) -> str:
        lease = new_lease()
        full = len(self.slots) == SLOTS
        room = self.table.kept_bytes + ceiling <= KEEP_BYTES
        try:
            slot = take(self.table, lease, now=self.now, ceiling=ceiling)
        except NoSlot:
            assert full or not room
            return ""
        assert not full
        assert slot not in self.slots.values()
        self.slots[lease] = slot
        self.kept[lease] = self.now + 10.0 + KEEP_SECONDS
        return lease

    @rule(target=stopping, lease=consumes(running))
    def stop(self, lease: str) -> str:
        if lease:
            self.table.stop(lease)
        return lease

    @rule(target=ended, lease=consumes(running) | consumes(stopping), size=st.integers(0, 100))
    def end(self, lease: str, size: int) -> str:
        if lease:
            self.table.end(lease, kept_bytes=size)
            del self.slots[lease]
            if lease in self.unwanted:
                del self.kept[lease]
        return lease

    @rule(lease=running | stopping | ended)
    def settle(self, lease: str) -> None:
        self.table.settle(lease)
        if lease in self.slots:
            self.unwanted.add(lease)
        else:
            self.kept.pop(lease, None)

    @rule(seconds=st.floats(0, 100))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        expired = set(self.table.expire(self.now))
        over = {k for k, end in self.kept.items() if k not in self.slots and self.now >= end}
        assert expired == over
        for lease in over:
            del self.kept[lease]

    @invariant()
    def slots_add_up(self) -> None:
        assert self.table.free == SLOTS - len(self.slots)
        for lease, slot in self.slots.items():
            assert self.table.slot(lease) == slot

    @invariant()
    def held_is_what_still_counts(self) -> None:
        assert set(self.table.held) == set(self.kept) - self.unwanted


TestSlotModel = SlotModel.TestCase


def test_a_stopping_lease_keeps_its_slot_until_the_engine_confirms() -> None:
    slots = table()
    leases = [new_lease() for _ in range(SLOTS)]
    for lease in leases:
        take(slots, lease)
    slots.stop(leases[0])

    assert slots.state(leases[0]) is LeaseState.STOPPING
    with pytest.raises(NoSlot):
        take(slots, new_lease())
    slots.end(leases[0], kept_bytes=0)
    assert take(slots, new_lease()) == 0


def test_a_lease_ends_by_its_remaining_seconds_from_receipt() -> None:
    slots = table()
    lease = new_lease()
    slots.take(lease, now=100.0, remaining_seconds=7.5, ceiling_bytes=1)

    assert slots.ends_at(lease) == 107.5


def test_two_leases_with_one_stream_id_do_not_run_together() -> None:
    slots = table()
    take(slots, "lease_00000000-0000-7000-8000-000000000001")
    with pytest.raises(NoSlot, match="stream id"):
        take(slots, "lease_00000001-0000-7000-8000-000000000001")
