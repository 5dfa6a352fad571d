"""`--prev` remembers a checkpoint: never for a bad receipt, never back, never over a fork."""

import json
from pathlib import Path

from tests.receipt_world import World
from tests.unit.ledger.verify.checking import other_world, world
from tests.unit.ledger.verify.running import make_folder, verify

__all__ = ["make_folder"]


def write_proof(path: Path, log: World, old: int, new: int) -> Path:
    hashes = ["0x" + each.hex() for each in log.consistency(old, new)]
    path.write_text(json.dumps({"from": str(old), "to": str(new), "proof": hashes}))
    return path


def test_prev_remembers_the_largest_checkpoint_and_never_goes_back(folder: Path) -> None:
    log, job, prev = world(), world().jobs[0], folder / "last.checkpoint"
    proof = write_proof(folder / "proof.json", log, 3, 5)
    for size in (3, 5):
        (folder / f"{size}.json").write_bytes(log.receipt(job, size).encode())

    def check(size: int, *more: str | Path) -> int:
        return verify(folder, folder / f"{size}.json", "--prev", prev, *more).code

    assert check(3) == 0
    assert prev.read_bytes() == log.checkpoint(3)
    assert check(3) == 0
    assert check(5) == 64
    assert prev.read_bytes() == log.checkpoint(3)
    assert check(5, "--consistency", proof) == 0
    assert prev.read_bytes() == log.checkpoint(5)
    assert check(3, "--consistency", proof) == 0
    assert prev.read_bytes() == log.checkpoint(5)
    assert [each.name for each in folder.glob("last*")] == ["last.checkpoint"]


def test_prev_is_not_written_for_a_receipt_that_is_refused(folder: Path) -> None:
    (folder / "one.json").write_bytes(other_world().receipt(other_world().jobs[0]).encode())
    assert verify(folder, folder / "one.json", "--prev", folder / "last").code == 1
    assert not (folder / "last").exists()


def test_a_fork_against_prev_ends_with_1_and_keeps_what_was_remembered(folder: Path) -> None:
    forked = World()
    forked.job("mallory")
    forked.seal()
    prev = folder / "last.checkpoint"
    prev.write_bytes(forked.checkpoint(2))
    (folder / "one.json").write_bytes(world().receipt(world().jobs[0], 2).encode())
    ended = verify(folder, folder / "one.json", "--prev", prev)
    assert ended.code == 1
    assert "forked" in ended.out
    assert prev.read_bytes() == forked.checkpoint(2)
