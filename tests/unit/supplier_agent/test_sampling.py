"""An engine gets what we say, not what it would assume."""

import json

from supplier_agent.engine.sampling import SamplingDefaults, engine_body
from supplier_agent.protocol import decode_request
from tests.unit.supplier_agent.samples import LEASE, Job, run_message

SCHEMA = '{"name":"n","schema":{"type":"object"}}'


def body(extra: str = "") -> dict[str, object]:
    request = decode_request(bytes(run_message(LEASE, Job(extra=extra)).request))
    decoded: dict[str, object] = json.loads(
        engine_body(request, slot=2, defaults=SamplingDefaults(temperature=0.2, top_p=0.9))
    )
    return decoded


def test_every_sampling_parameter_is_explicit() -> None:
    sent = body()

    assert sent["n"] == 1
    assert sent["stream"] is True
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["max_tokens"] == 16
    assert sent["id_slot"] == 2
    assert (sent["temperature"], sent["top_p"]) == (0.2, 0.9)
    for name in ("top_k", "min_p", "repeat_penalty", "seed", "stop"):
        assert name in sent


def test_what_the_buyer_asked_for_wins() -> None:
    sent = body(',"temperature":0,"seed":7,"stop":["\\n"]')

    assert (sent["temperature"], sent["seed"], sent["stop"]) == (0.0, 7, ["\n"])


def test_a_json_schema_is_forwarded() -> None:
    sent = body(f',"response_format":{{"type":"json_schema","json_schema":{SCHEMA}}}')

    assert sent["response_format"] == {"type": "json_schema", "json_schema": json.loads(SCHEMA)}


def test_prefix_cache_timing_leaks_between_customers() -> None:
    """Lesson (CVE-2025-46570): no prompt may be served faster because another asked it."""
    assert body()["cache_prompt"] is False
