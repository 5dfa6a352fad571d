"""`offpeak log`: what its operator does, and what it says when something is wrong."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.exits import Exit
from ledger.signing import SigningKey
from tests.integration.books import Books, wallet
from tests.integration.cli.running import invoked
from tests.integration.receipts.conftest import Archive, environment, seed

BUYER = wallet(1)


@pytest.fixture
def log(fresh_database_url: str, tmp_path: Path) -> "Commands":
    return Commands(fresh_database_url, tmp_path)


class Commands:
    """Runs `offpeak log ...` on a database; the checkpoint key by name."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home

    async def run(self, *arguments: str, key: str = "log") -> tuple[int, Any]:
        """Return the exit code, and the document or the error that `--json` shows."""
        given = environment(self.url, log_key=key)
        # in a thread: a command runs a loop of its own
        done = await asyncio.to_thread(invoked, self.home, "log", *arguments, "--json", **given)
        lines = (done.stdout if done.exit_code == 0 else done.stderr).strip()
        return done.exit_code, json.loads(lines)

    def key_file(self, text: str) -> str:
        path = self.home / "next.key"
        path.write_text(text)
        return str(path)


async def test_a_sealed_log_is_checked_and_a_damaged_one_ends_with_10(
    archive: Archive, log: Commands, fresh_database_url: str
) -> None:
    archive.end_jobs(BUYER, 3)
    await archive.sign()
    assert await log.run("seal") == (0, {"sealed": 3, "logged": 1, "checkpoints": 2})
    assert await log.run("seal") == (0, {"sealed": 0, "logged": 0, "checkpoints": 0})
    code, report = await log.run("check")
    assert (code, report["clean"], report["records"]) == (0, True, 3)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.usage_record SET salt = sha256(salt)")
    code, failed = await log.run("check")
    assert (code, failed["error"]["code"]) == (Exit.CHECK_FAILED, "log-mismatch")


async def test_a_checkpoint_key_is_replaced_and_the_old_one_then_refused(
    archive: Archive, log: Commands
) -> None:
    await archive.seal(BUYER)
    file = log.key_file(seed("next log").hex())
    assert await log.run("rotate", "--checkpoint-key-file", file) == (0, {"log_index": 2})
    archive.end_jobs(BUYER)
    await archive.sign()
    code, failed = await log.run("seal")
    assert (code, failed["error"]["code"]) == (Exit.SETTINGS, "checkpoint-key-retired")
    assert (await log.run("seal", key="next log"))[1]["sealed"] == 1
    assert (await log.run("check", key="next log"))[1]["clean"]


@pytest.mark.parametrize("text", ["", "no key", "00" * 32, "ab" * 31, f"{'ab' * 32}\n{'cd' * 32}"])
async def test_a_file_that_holds_no_one_key_rotates_nothing(
    archive: Archive, log: Commands, text: str
) -> None:
    await archive.sequencer().run_once()
    code, failed = await log.run("rotate", "--checkpoint-key-file", log.key_file(text))
    assert (code, failed["error"]["code"]) == (Exit.USAGE, "bad-input")
    assert (await archive.reader.checkpoint()).size == 1


async def test_a_rotation_that_cannot_be_is_refused_with_its_reason(
    archive: Archive, log: Commands
) -> None:
    await archive.seal(BUYER)
    old = archive.terms.record_key
    for arguments in ((), ("--retire-record-key", old), ("--record-key", old)):
        code, failed = await log.run("rotate", *arguments)
        assert (code, failed["error"]["code"]) == (Exit.REFUSED, "rotation-refused")
    code, failed = await log.run("rotate", "--record-key", "0x12")
    assert (code, failed["error"]["code"]) == (Exit.USAGE, "bad-address")
    fresh = SigningKey(seed("next record")).address
    assert (await log.run("rotate", "--record-key", fresh, "--retire-record-key", old))[0] == 0
