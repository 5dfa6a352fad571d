"""Whatever is killed, whenever: no accepted job is lost and none is charged twice."""

from pathlib import Path

from tests.acceptance.endstate import assert_whole
from tests.acceptance.kill_rounds import PARTS, kill_rounds, play


def test_kills_at_random_points_lose_no_accepted_job_and_charge_none_twice(
    tmp_path: Path,
) -> None:
    with kill_rounds(tmp_path, seed=1) as run:
        notes = play(run, len(PARTS), people=6)

        assert set(run.kills) == set(PARTS)
        assert_whole(run.site, notes)
        assert notes.failed == {}
        assert "internal-error" not in notes.refusals
