"""`--prev` remembers a checkpoint: never for a bad receipt, never back, never over a fork."""

import json
from pathlib import Path

import pytest

from ledger.verify.errors import Unusable
from ledger.verify.remembered import store
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


def test_a_file_that_another_run_has_changed_is_left_alone(tmp_path: Path) -> None:
    log, prev = world(), tmp_path / "last"
    store(str(prev), log.origin, was=None, now=log.head(2), note=log.checkpoint(2))
    with pytest.raises(Unusable, match="changed while"):
        store(str(prev), log.origin, was=log.head(1), now=log.head(5), note=log.checkpoint(5))
    assert prev.read_bytes() == log.checkpoint(2)


def test_a_checkpoint_of_another_log_is_not_compared(folder: Path) -> None:
    prev = folder / "last"
    prev.write_bytes(World(origin="elsewhere.example").checkpoint())
    ended = verify(folder, folder / "receipt.json", "--prev", prev)
    assert ended.code == 64
    assert "remembers elsewhere.example" in ended.err


def test_a_folder_that_lacks_proofs_is_unchecked_and_not_full_of_gaps(folder: Path) -> None:
    log, prev = world(), folder / "last"
    prev.write_bytes(log.checkpoint(4))
    assert verify(folder, folder / "all", "--prev", prev).code == 64
    proof = write_proof(folder / "proof.json", log, 4, 5)
    assert verify(folder, folder / "all", "--prev", prev, "--consistency", proof).code == 0
    for number, size in ((0, 3), (1, 2)):
        receipt = log.receipt(log.jobs[number], size)
        (folder / "all" / f"{number:02}.json").write_bytes(receipt.encode())
    proofs = [write_proof(folder / f"{size}.json", log, size, 5) for size in (2, 3)]
    more = [each for path in proofs for each in ("--consistency", path)]
    assert verify(folder, folder / "all", "--prev", prev, *more[:2]).code == 64
    assert verify(folder, folder / "all", "--prev", prev, *more).code == 0


def test_prev_behind_a_link_is_kept_where_the_link_leads(folder: Path) -> None:
    log, job = world(), world().jobs[0]
    (folder / "shared").mkdir()
    (folder / "shared" / "last").write_bytes(log.checkpoint(3))
    (folder / "last").symlink_to(folder / "shared" / "last")
    proof = write_proof(folder / "proof.json", log, 3, 5)
    (folder / "5.json").write_bytes(log.receipt(job, 5).encode())
    given = (folder / "5.json", "--prev", folder / "last", "--consistency", proof)
    assert verify(folder, *given).code == 0
    assert (folder / "last").is_symlink()
    assert (folder / "shared" / "last").read_bytes() == log.checkpoint(5)
