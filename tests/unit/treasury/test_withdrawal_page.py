"""`docs/spec/withdrawal.md`: its example is the vector, its type, states, codes and limits ours."""

import json
import re
from pathlib import Path
from typing import get_args

from app.problems import STATUS
from app.treasury.schemas import RelayOut, WithdrawalOut
from app.treasury.withdrawal import LEAST_AHEAD, MOST_AHEAD
from ledger.authorization import Withdrawal
from tests.vectors.make_eip712 import PATH

PAGE = (Path(__file__).parents[3] / "docs" / "spec" / "withdrawal.md").read_text("utf-8")
VECTORS = json.loads(PATH.read_text("utf-8"))["vectors"]


def section(name: str) -> str:
    return PAGE.split(f"## {name}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)


def test_the_example_is_the_vector() -> None:
    vector = next(v for v in VECTORS if (v["type"], v["name"]) == ("Withdrawal", "plain"))
    [shown] = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert json.loads(shown) == {k: vector[k] for k in vector if k not in {"type", "name"}}


def test_the_type_and_its_members_are_those_of_the_code() -> None:
    assert Withdrawal.TYPE.type_string in section("Bytes")
    assert set(first_cells(section("Bytes"))) == Withdrawal.TYPE.members


def test_the_states_are_all_that_can_be_answered() -> None:
    withdrawal = get_args(WithdrawalOut.model_fields["state"].annotation)
    relay = get_args(RelayOut.model_fields["state"].annotation)
    assert first_cells(section("States")) == [*withdrawal, *relay]


def test_the_limits_are_the_codes() -> None:
    minutes, days = LEAST_AHEAD.total_seconds() / 60, MOST_AHEAD.days
    assert f"between {minutes:.0f} minutes and {days} days ahead" in section("Asking")


def test_every_refusal_has_the_status_that_it_is_served_with() -> None:
    served: dict[str, int] = {}
    for kind, status in STATUS.items():
        served[getattr(kind, "code", "")] = status
    listed = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", section("Errors"), re.MULTILINE)
    assert len(listed) > 10
    assert {code: int(status) for code, status in listed} == {
        code: served[code] for code, _ in listed
    }
