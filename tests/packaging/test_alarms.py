"""Every alarm has a rule and a page, and every rule is about a gauge that there is."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from app.treasury import status
from app.treasury.metrics import TreasuryMetrics

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
RULES = (HOW_TO / "treasury-alarms.yml").read_text("utf-8")
PAGE = (HOW_TO / "respond-to-an-alarm.md").read_text("utf-8")
OF_PROMETHEUS = {"TreasuryStatusStale"}
"""Only something outside can notice that nothing is shown."""


def raised() -> set[str]:
    source = Path(status.__file__).read_text("utf-8")
    return set(re.findall(r'name="(Treasury\w+)"', source))


def test_every_alarm_has_a_rule_and_a_row_of_the_page() -> None:
    assert len(raised()) == 8
    assert set(re.findall(r"alert: (\w+)", RULES)) == raised() | OF_PROMETHEUS
    assert set(re.findall(r"^\| `(Treasury\w+)`", PAGE, re.MULTILINE)) == raised() | OF_PROMETHEUS


def test_every_gauge_of_a_rule_exists() -> None:
    registry = CollectorRegistry()
    TreasuryMetrics(registry)
    known = {family.name for family in registry.collect()}
    assert set(re.findall(r"offpeak_treasury_\w+", RULES)) <= known


def test_every_kind_that_can_wait_has_a_row_of_the_page() -> None:
    rows = set(re.findall(r"^\| ([a-z]+) \| [^|]+ \| [^|]*\d", PAGE, re.MULTILINE))
    assert {str(kind) for kind in status.Kind} == rows
