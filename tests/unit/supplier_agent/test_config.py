"""Settings come from a file, the environment and options, and say what is wrong."""

from pathlib import Path

import pytest

from supplier_agent.config import BadConfig, load_settings
from tests.unit.supplier_agent.samples import AGENT

GIVEN: dict[str, object] = {
    "gateway": "https://gateway.example",
    "agent_id": AGENT,
    "key_file": Path("device.key"),
    "release": Path("release.json"),
    "weights": Path("model.gguf"),
    "deployment": "demo",
    "ask": "0.000001000",
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFPEAK_AGENT_SLOTS", raising=False)


def test_options_beat_the_environment_and_that_beats_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = tmp_path / "agent.toml"
    toml.write_text('region = "file"\nslots = 1\nthreads = 3\n', encoding="utf-8")
    monkeypatch.setenv("OFFPEAK_AGENT_REGION", "environment")
    monkeypatch.setenv("OFFPEAK_AGENT_SLOTS", "2")

    settings = load_settings(toml, GIVEN | {"slots": 3})

    assert (settings.threads, settings.region, settings.slots) == (3, "environment", 3)
    assert settings.ask_nano_per_slot_second == 1000


@pytest.mark.parametrize(
    ("gateway", "url"),
    [
        ("https://gateway.example", "wss://gateway.example/v1/agents/connect"),
        ("https://gateway.example/base/", "wss://gateway.example/base/v1/agents/connect"),
        ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/v1/agents/connect"),
        ("wss://g.example/v1/agents/connect", "wss://g.example/v1/agents/connect"),
    ],
)
def test_the_agent_adds_scheme_and_path(gateway: str, url: str) -> None:
    assert load_settings(None, GIVEN | {"gateway": gateway}).connect_url == url


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"gateway": "http://gateway.example"}, "TLS"),
        ({"gateway": "gateway.example"}, "https"),
        ({"agent_id": "agent_1"}, "agent_id"),
        ({"ask": "-1"}, "ask"),
        ({"slots": 0}, "slots"),
        ({"weights": None}, "weights or engine_url"),
        ({"engine_url": "http://127.0.0.1:1"}, "weights or engine_url"),
        ({"surprise": 1}, "surprise"),
        ({"capacity_class": "protected"}, "capacity_class"),
        ({"deployment": None}, "deployment"),
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, object], word: str) -> None:
    with pytest.raises(BadConfig, match=word):
        load_settings(None, GIVEN | change)


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="no such file"):
        load_settings(tmp_path / "none.toml", GIVEN)
    broken = tmp_path / "broken.toml"
    broken.write_text("not toml", encoding="utf-8")
    with pytest.raises(BadConfig, match=r"broken\.toml"):
        load_settings(broken, GIVEN)
