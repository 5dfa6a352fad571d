"""`offpeak-verify` as people run it: files, options, exit codes, and never a traceback."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.verify.exits import Exit
from ledger.verify.limits import NOT_PROVED
from tests.receipt_world import NOW, small_world
from tests.unit.ledger.verify.checking import good, other_world, subject, world
from tests.unit.ledger.verify.running import MODULE, ROOT, make_folder, run, verify

__all__ = ["make_folder"]


def test_a_good_receipt_ends_with_0_and_shows_each_step_on_a_line(folder: Path) -> None:
    ended = verify(folder, folder / "receipt.json")
    assert (ended.code, ended.err) == (0, "")
    assert len(re.findall(r"^  (?:ok|absent) ", ended.out, re.MULTILINE)) == 21
    assert "VERIFIED (exit 0)" in ended.out


@pytest.mark.parametrize("kind", ["good", "bad", "pending"])
def test_what_a_receipt_does_not_prove_is_always_said(folder: Path, kind: str) -> None:
    receipt = {
        "good": good(),
        "bad": other_world().receipt(other_world().jobs[0]),
        "pending": world().receipt(world().waiting[0]),
    }[kind]
    (folder / "one.json").write_bytes(receipt.encode())
    plain, machine = (verify(folder, folder / "one.json", *more) for more in ((), ("--json",)))
    assert plain.code == machine.code == {"good": 0, "bad": 1, "pending": 2}[kind]
    assert machine.document["does_not_prove"] == list(NOT_PROVED)
    for each in NOT_PROVED:
        assert each in plain.out


def test_the_json_document_says_all_that_the_text_does(folder: Path) -> None:
    found = verify(folder, folder / "receipt.json", "--json").document
    (receipt,) = found["receipts"]
    assert (found["verified"], found["exit"], receipt["refused"]) == (True, 0, None)
    assert receipt["record"]["charge_nano"] == str(subject().record.charge_nano)
    assert receipt["record"]["log_index"] == str(world().batches[2].index)
    assert receipt["steps"][0]["step"] == "form"
    assert len(receipt["steps"]) == 21


def test_a_changed_receipt_ends_with_1_and_names_the_step(folder: Path) -> None:
    text = (
        (folder / "receipt.json").read_text().replace("I was charged twice", "I was charged once")
    )
    (folder / "receipt.json").write_text(text)
    ended = verify(folder, folder / "receipt.json", "--json")
    assert ended.code == 1
    assert ended.document["receipts"][0]["refused"] == "opening"


def test_a_folder_shows_sequence_and_totals(folder: Path) -> None:
    ended = verify(folder, folder / "all")
    assert ended.code == 0, ended.out
    assert "records 1 to 8" in ended.out
    history = verify(folder, folder / "all", "--json").document["history"]
    assert history["problems"] == []
    assert history["totals"][0]["refunded_nano"] == "1000"


def test_a_gap_in_a_folder_ends_with_1_but_not_among_named_files(folder: Path) -> None:
    (folder / "all" / "02.json").unlink()
    ended = verify(folder, folder / "all")
    assert ended.code == 1
    assert "GAP" in ended.out
    named = verify(folder, *sorted((folder / "all").iterdir()))
    assert named.code == 0
    assert "GAP" in named.out


def test_the_worst_of_several_receipts_decides(folder: Path) -> None:
    (folder / "all" / "99.json").write_bytes(world().receipt(world().waiting[0]).encode())
    assert verify(folder, folder / "all").code == 2
    assert verify(folder, folder / "all", folder / "missing.json").code == 64
    (folder / "all" / "98.json").write_text("{}")
    ended = verify(folder, folder / "all", folder / "missing.json")
    assert ended.code == 1
    assert "98.json  INVALID: form" in ended.out


def test_a_request_is_compared_in_any_spelling(folder: Path) -> None:
    sent = json.loads(subject().request)
    salt = "0x" + subject().request_salt.hex()
    one, receipt = folder / "request.json", folder / "receipt.json"
    for value in (sent, {"payer": "0x", "salt": salt, "request": sent}):
        one.write_text(json.dumps(value, indent=3))
        assert verify(folder, receipt, "--request", one).code == 0
    sent["max_output_tokens"] += 1
    one.write_text(json.dumps(sent))
    assert verify(folder, receipt, "--request", one).code == 1
    receipt.write_bytes(replace(good(), opening=None).encode())
    one.write_bytes(subject().request)
    assert verify(folder, receipt, "--request", one).code == 64
    assert verify(folder, receipt, "--request", one, "--salt", salt).code == 0
    assert verify(folder, receipt, "--request", one, "--salt", "0x" + "00" * 32).code == 1


def test_fresh_and_required_anchors_have_their_exit_codes(folder: Path) -> None:
    pending = folder / "pending.json"
    pending.write_bytes(world().receipt(world().waiting[0]).encode())
    is_late = world().waiting[0].record.include_by < NOW + 2 * 86_400
    assert is_late
    assert verify(folder, pending).code == 2
    late = (
        int(subprocess.run(["date", "+%s"], capture_output=True, check=True).stdout) > NOW + 10**5
    )
    assert verify(folder, pending, "--fresh").code == (4 if late else 2)
    assert verify(folder, folder / "receipt.json", "--require", "anchored").code == 3


USAGE: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "required"),
    "no policy": (["receipt.json"], "--policy"),
    "an unknown option": (["receipt.json", "--policy", "policy.txt", "--trust"], "--trust"),
    "an abbreviated option": (["receipt.json", "--pol", "policy.txt"], "--policy"),
    "no such policy": (["receipt.json", "--policy", "none.txt"], "none.txt"),
    "a policy that is none": (["receipt.json", "--policy", "receipt.json"], "line 1"),
    "a policy without end": (["receipt.json", "--policy", "/dev/zero"], "regular file"),
    "an rpc": (["receipt.json", "--policy", "policy.txt", "--rpc", "ws://x"], "--rpc"),
    "an unknown requirement": (
        ["receipt.json", "--policy", "policy.txt", "--require", "truth"],
        "--require",
    ),
    "a salt alone": (["receipt.json", "--policy", "policy.txt", "--salt", "0x"], "--request"),
    "a bad salt": (
        ["receipt.json", "--policy", "policy.txt", "--request", "receipt.json", "--salt", "0x1"],
        "salt",
    ),
    "a request for a folder": (
        ["all", "--policy", "policy.txt", "--request", "receipt.json"],
        "one receipt",
    ),
    "a request that is none": (
        ["receipt.json", "--policy", "policy.txt", "--request", "policy.txt"],
        "not a request",
    ),
    "a proof that is none": (
        ["receipt.json", "--policy", "policy.txt", "--consistency", "policy.txt"],
        "consistency proof",
    ),
    "a remembered checkpoint that is none": (
        ["receipt.json", "--policy", "policy.txt", "--prev", "policy.txt"],
        "not a checkpoint",
    ),
    "a remembered folder": (["receipt.json", "--policy", "policy.txt", "--prev", "all"], "all"),
    "nowhere to remember": (
        ["receipt.json", "--policy", "policy.txt", "--prev", "none/last"],
        "none",
    ),
    "an empty folder": (["empty", "--policy", "policy.txt"], "0 .json files"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_ends_with_64_and_one_clear_line(folder: Path, name: str) -> None:
    (folder / "empty").mkdir()
    arguments, word = USAGE[name]
    made = [
        str(folder / each) if (folder / each).exists() or "none" in each else each
        for each in arguments
    ]
    ended = run(*made)
    assert ended.code == 64
    last = ended.err.strip().split("\n")[-1]
    assert last.startswith("offpeak-verify: ")
    assert word in last


def test_files_that_are_none_are_not_waited_for_and_end_with_64(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    unusable = ["pipe", "loop", "missing.json", "/dev/zero", "/dev/null", "/proc/self/mem"]
    for name in unusable:
        ended = verify(folder, folder / name)
        assert ended.code == 64, name
        assert "NOT CHECKED" in ended.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_ends_with_64(folder: Path) -> None:
    (folder / "receipt.json").chmod(0)
    assert verify(folder, folder / "receipt.json").code == 64


def test_a_hundred_megabytes_are_refused_unread(folder: Path) -> None:
    huge = folder / "huge.json"
    with huge.open("wb") as file:
        file.truncate(100_000_000)
    ended = verify(folder, huge)
    assert ended.code == 1
    assert "larger than 4000000 bytes" in ended.out


def test_bytes_that_are_no_text_end_with_1(folder: Path) -> None:
    (folder / "receipt.json").write_bytes(bytes(range(256)))
    assert verify(folder, folder / "receipt.json").code == 1


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(folder: Path) -> None:
    name = folder / "a\x1b[31m\n.json"
    name.write_bytes(good().encode())
    ended = verify(folder, name)
    assert ended.code == 0
    assert "\x1b" not in ended.out


def test_a_name_that_is_no_utf_8_is_shown(folder: Path) -> None:
    name = os.fsencode(folder) + b"/\xff.json"
    Path(os.fsdecode(name)).write_bytes(good().encode())
    done = subprocess.run(
        [*MODULE, name, "--policy", str(folder / "policy.txt")],
        cwd=ROOT, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_pipe_changes_neither_exit_code_nor_silence(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*MODULE, str(folder / "receipt.json"), "--policy", str(folder / "policy.txt")],
        cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_and_full_streams_are_no_traceback(folder: Path) -> None:
    given = f"{folder}/receipt.json --policy {folder}/policy.txt"
    for ending, code in ((">&-", 0), (">&- 2>&-", 0), (">/dev/full", 64), ("--bad 2>&-", 64)):
        shell = ["sh", "-c", f"exec {' '.join(MODULE)} {given} {ending}"]
        assert run(command=shell).code == code, ending


def test_help_lists_the_exit_codes() -> None:
    ended = run("--help")
    assert ended.code == 0
    for code in Exit:
        assert re.search(rf"^ +{int(code)}  ", ended.out, re.MULTILINE)


def test_two_worlds_of_one_name_make_the_same_bytes() -> None:
    again = small_world()
    assert [again.receipt(job).encode() for job in again.jobs] == [
        world().receipt(job).encode() for job in world().jobs
    ]
