"""`offpeak demo`: the whole flow, three real tasks and a refusal, in one document."""

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.embedded.npm import can_have_anvil
from tests.integration.cli.running import offpeak


def all_is_where_it_belongs(told: dict[str, Any]) -> bool:
    """What came in is what went back, what was earned and what is too little to go back."""
    back = told["brought_back"]
    treasury = back["treasury"]
    assert (back["withdrawal"]["state"], back["withdrawal"]["fee"]) == ("paid", "0.000000000")
    assert Decimal(back["balance_after"]["available"]) < Decimal("0.000001")
    assert (treasury["holds"], treasury["alarms"]) == (True, [])
    left = Decimal(treasury["chain"]["tokens"])
    assert Decimal(told["deposit"]["amount"]) == Decimal(back["wallet_tokens"]) + left
    charged = sum(Decimal(task["job"]["charge"]) for task in told["tasks"])
    rest = Decimal(back["balance_after"]["available"])
    return charged + rest == left


pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]


def test_the_demo_runs_three_tasks_a_refusal_and_verifies_a_receipt(tmp_path: Path) -> None:
    done = offpeak(tmp_path, "demo", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    classified, extracted, summarized = told["tasks"]
    assert json.loads(classified["job"]["answer"]["content"]) == {"category": "technical"}
    product = json.loads(extracted["job"]["answer"]["content"])
    assert (product["price"], product["battery_hours"]) == (79.9, 32)
    assert "Millbrook" in summarized["job"]["answer"]["content"]
    for task in told["tasks"]:
        job = task["job"]
        assert task["record_verified"]
        assert Decimal(job["held"]) == Decimal(job["charge"]) + Decimal(job["released"])
        before, after = task["balance_before"], task["balance_after"]
        spent = Decimal(before["available"]) - Decimal(after["available"])
        assert spent == Decimal(job["charge"])
        assert Decimal(after["held"]) == 0
    assert told["refused"]["problem"]["code"] == "insufficient-funds"
    receipt = told["receipt"]
    assert (receipt["verified"]["exit"], receipt["refused"]["exit"]) == (0, 1)
    [verdict] = receipt["verified"]["receipts"]
    assert verdict["verified"]
    if can_have_anvil(os.environ):
        assert told["deposit"]["amount"] == "0.000150000"
        assert all_is_where_it_belongs(told)
    last = told["tasks"][-1]["balance_after"]["available"]
    assert told["refused"]["balance_after"]["available"] == last
