"""A wallet's receipts from real jobs to `offpeak-verify`, a correction among them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.cli.exits import Exit
from app.embedded.stack import Stack
from tests.integration.cli.running import ROOT, invoked

pytestmark = pytest.mark.engine


def told(stack: Stack, *arguments: str) -> Any:
    done = invoked(stack.home.path, *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def ask(stack: Stack) -> str:
    done = invoked(stack.home.path, "ask", "One word.", "--max-tokens", "8", "--yes")
    assert done.exit_code == 0, done.stderr
    return str(re.findall(r"job_[0-9a-f-]{36}", done.stderr)[0])


def verify(*arguments: Path | str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "ledger.verify", *map(str, arguments), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_receipts_of_real_jobs_are_verified_a_correction_among_them(
    stack: Stack, tmp_path: Path
) -> None:
    before = ask(stack)
    told(stack, "log", "seal")
    policy, receipts = tmp_path / "policy.txt", tmp_path / "receipts"
    receipts.mkdir()
    told(stack, "log", "policy", "-o", str(policy))
    remembered = tmp_path / "last.checkpoint"
    early = tmp_path / "early.json"
    told(stack, "receipt", "get", before, "-o", str(early))
    assert verify(early, "--policy", policy, "--prev", remembered)[0] == 0

    because = ("--because", "a TEST correction")
    told(stack, "finance", "correct", before, "--charge", "0.000000002", *because)
    [once] = [r for r in told(stack, "receipt", "list")["receipts"] if r["corrects_record"]]
    told(stack, "finance", "correct", once["record_id"], "--charge", "0", *because)
    pending = tmp_path / "pending.json"
    told(stack, "receipt", "get", ask(stack), "-o", str(pending))
    assert verify(pending, "--policy", policy)[0] == 2
    told(stack, "log", "seal")
    assert told(stack, "log", "check")["clean"]
    assert told(stack, "finance", "reconcile")["unmatched"] == 0

    listed = told(stack, "receipt", "list", "--limit", "100")["receipts"]
    assert [each["payer_seq"] for each in listed] == list(range(1, len(listed) + 1))
    corrections = [each for each in listed if each["outcome"] == "correction"]
    assert [each["charge"] for each in corrections] == ["0.000000002", "0.000000000"]
    assert [each["corrects_record"] for each in corrections] == [before, once["record_id"]]
    for each in listed:
        name = str(receipts / f"{each['record_id']}.json")
        told(stack, "receipt", "get", each["record_id"], "-o", name)
    code, verdict = verify(receipts, "--policy", policy)
    assert code == 0, verdict


def test_a_receipt_of_nobodys_job_is_refused(stack: Stack) -> None:
    done = invoked(stack.home.path, "receipt", "get", "job_01990000-0000-7000-8000-000000000000")
    assert done.exit_code == Exit.REFUSED
    assert "record-not-found" in done.stderr
