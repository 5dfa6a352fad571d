import io
import json
import logging
from collections.abc import Iterator

import httpx
import pytest
import structlog

from app.kit.log import FORBIDDEN_FIELDS, configure_logging

SIGNATURE = "0x" + "ab" * 65
KEY = "cd" * 32
PROMPT = "my secret medical question"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    configure_logging(stream=stream)
    yield stream
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_prompts_keys_and_signatures_are_never_written(written: io.StringIO) -> None:
    log = structlog.get_logger()
    log.info(
        "accepted", prompt=PROMPT, messages=[{"content": PROMPT}], job="job_1", wallet=SIGNATURE
    )
    log.info("nested", request={"messages": PROMPT, "model": "m", "authorization": KEY})
    careless = f"signed {SIGNATURE} with {KEY}"
    log.info(careless, raw=PROMPT.encode())
    log.info("read", header="Authorization: OffpeakRead eyJhY2Nlc3MiOnt9fQ")
    log.info("store", url="postgresql://offpeak:hunter2@db/offpeak")
    try:
        int(f"bad key {KEY}")
    except ValueError:
        log.exception("failed")
    logging.getLogger("library").warning("connecting with %s", KEY)

    text = written.getvalue()
    for secret in (PROMPT, SIGNATURE, SIGNATURE[2:], KEY, "eyJhY2", "hunter2"):
        assert secret not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0] == lines[0] | {"event": "accepted", "job": "job_1", "level": "info"}
    assert lines[1]["request"] == {"model": "m"}
    assert len(lines) == 7


@pytest.mark.parametrize("name", sorted(FORBIDDEN_FIELDS))
def test_a_forbidden_field_is_dropped_in_any_case(written: io.StringIO, name: str) -> None:
    structlog.get_logger().info("event", **{name: "value-x", name.upper(): "value-x"})
    assert "value-x" not in written.getvalue()


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_no_library_logs_the_url_of_a_node(level: str) -> None:
    root = logging.getLogger()
    handlers, before = root.handlers, root.level
    stream = io.StringIO()
    try:
        configure_logging(level=level, stream=stream)
        answer = httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": "0x1"})
        transport = httpx.MockTransport(lambda _: answer)
        with httpx.Client(transport=transport) as client:
            client.post("https://node.example/v3/the-api-key")
        assert "the-api-key" not in stream.getvalue()
    finally:
        root.handlers = handlers
        root.setLevel(before)
        structlog.reset_defaults()
