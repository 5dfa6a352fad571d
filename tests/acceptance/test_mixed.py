"""Load, failures and a wallet that everybody uses, all at once."""

from tests.acceptance.mixed import assert_sound, play
from tests.acceptance.town import GATEWAYS, SLOTS, Town

SECONDS = 8


def test_a_mixed_run_oversells_no_slot_and_overspends_no_wallet(town: Town) -> None:
    notes = play(
        town.site,
        seconds=SECONDS,
        clients=16,
        gateways=GATEWAYS,
        failing=["engine-2"],
        slots=SLOTS,
        seed=2,
    )

    assert_sound(town.site, notes, slots=SLOTS)
    assert notes.refusals["funds-on-hold"] > 0
    assert len(notes.jobs) > 0
