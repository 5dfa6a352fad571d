"""Structured JSON logs that cannot carry a prompt, a key or a signature.

Fields are dropped by name and text is masked by form, so that a careless call site, a library's
message or a traceback does not leak either.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import TextIO

import orjson
import structlog

FORBIDDEN_FIELDS = frozenset(
    {
        "answer",
        "api_key",
        "authorization",
        "body",
        "completion",
        "content",
        "cookie",
        "credentials",
        "database_url",
        "delta",
        "detail",
        "headers",
        "input",
        "key",
        "messages",
        "nonce",
        "openai_key",
        "output",
        "password",
        "payload",
        "plain",
        "private_key",
        "prompt",
        "prompts",
        "query",
        "redis_url",
        "request_body",
        "response_body",
        "salt",
        "sealed",
        "secret",
        "seed_phrase",
        "signature",
        "signing_key",
        "text",
        "token",
        "typed_data",
    }
)
"""Event fields that are never written, whatever they hold."""

MASKS = (
    (re.compile(r"0x[0-9a-fA-F]{64,}"), "<hex>"),
    (re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64,}(?![0-9a-fA-F])"), "<hex>"),
    (re.compile(r"OffpeakRead\s+\S+"), "OffpeakRead <hidden>"),
    (re.compile(r"(?i)bearer\s+\S+"), "Bearer <hidden>"),
    (re.compile(r"://[^/\s:@]+:[^@\s/]+@"), "://<hidden>@"),
)
"""Signatures, private keys and digests are all 32 bytes of hex or more: none is written."""

TALKATIVE = ("httpx", "httpcore")
"""Libraries that log every URL they ask: a node's URL often is its password."""

TEXT_LIMIT = 4_096
SHORTEST_SECRET = 64


def masked_text(text: str) -> str:
    """Return the text without anything shaped like a key, a signature or a credential."""
    if len(text) < SHORTEST_SECRET and " " not in text and "://" not in text:
        return text
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "<cut>"


def masked(value: object) -> object:
    """Return a value safe to write; bytes become their length, unknown objects their text."""
    match value:
        case None | bool() | int() | float():
            safe: object = value
        case bytes() | bytearray() | memoryview():
            safe = f"<{len(value)} bytes>"
        case Mapping():
            safe = {str(name): masked(held) for name, held in value.items() if not forbidden(name)}
        case list() | tuple() | set() | frozenset():
            safe = [masked(held) for held in value]
        case _:
            safe = masked_text(str(value))
    return safe


def forbidden(name: object) -> bool:
    """Return whether a field of this name is never written."""
    return str(name).lower() in FORBIDDEN_FIELDS


def drop_content(
    _logger: object, _method: str, event: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    """Structlog processor: drop forbidden fields and mask the rest, nested values included."""
    return {name: masked(value) for name, value in event.items() if not forbidden(name)}


def json_line(event: object, **_: object) -> str:
    """Return an event that `drop_content` has left, as JSON with its keys in order."""
    return orjson.dumps(event, default=str, option=orjson.OPT_SORT_KEYS).decode()


def configure_logging(*, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send structlog and the standard library's logging through the same masked JSON form."""
    target = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        drop_content,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=json_line)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.WriteLoggerFactory(target),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=json_line),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
