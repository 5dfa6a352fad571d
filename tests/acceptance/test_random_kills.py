"""Whatever is killed, whenever: no accepted job is lost and none is charged twice."""

import random

from tests.acceptance.endstate import assert_whole
from tests.acceptance.evidence import assert_evidence
from tests.acceptance.kill_rounds import PARTS, KillRounds
from tests.acceptance.town import Town


def test_kills_at_random_points_lose_no_accepted_job_and_charge_none_twice(town: Town) -> None:
    run = KillRounds(town, random.Random(1))
    notes = run.play(len(PARTS), people=6)

    assert run.kills.keys() == PARTS.keys()
    assert_whole(town.site, notes)
    assert_evidence(town.site)
    assert notes.failed == {}
    assert "internal-error" not in notes.refusals
