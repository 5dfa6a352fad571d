"""A stream is a success only with a finish reason, a usage and `[DONE]`; else it is refused."""

import contextlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.commitment import answer_digest
from supplier_agent.protocol import (
    Answer,
    AnswerAssembler,
    MalformedStream,
    Usage,
    stream_limit_bytes,
)

USAGE: dict[str, object] = {
    "choices": [],
    "usage": {
        "prompt_tokens": 31,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
    },
}
DONE = b"data: [DONE]\n\n"


def event(chunk: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def text(content: str | None, finish: str | None = None) -> bytes:
    delta = {} if content is None else {"content": content}
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


WHOLE = text("Hel") + text("lo ☀") + text(None, "stop") + event(USAGE) + DONE


def assemble(stream: bytes, *, pieces: tuple[int, ...] = (), ceiling: int = 16) -> Answer:
    assembler = AnswerAssembler(max_output_tokens=ceiling)
    bounds = sorted({0, *(cut % (len(stream) + 1) for cut in pieces), len(stream)})
    for start, end in itertools.pairwise(bounds):
        assembler.feed(stream[start:end])
    return assembler.finish()


@given(st.lists(st.integers(0, 10_000), max_size=12).map(tuple))
def test_how_a_stream_is_cut_does_not_change_the_answer(pieces: tuple[int, ...]) -> None:
    answer = assemble(WHOLE, pieces=pieces)

    assert answer.content == "Hello ☀"
    assert answer.finish_reason == "stop"
    assert answer.usage == Usage(input_tokens=31, cached_input_tokens=4, output_tokens=3)


def test_the_answers_digest_has_exactly_the_specified_bytes() -> None:
    """SHA-256 of the tag line, the line `stop` and `Hello`."""
    expected = "8069af4b3927cf58590d9cd9bfc3526f38a156c12d7ba86281764168d241c2f8"
    assert answer_digest("Hello", "stop").hex() == expected


def test_text_is_returned_as_it_completes() -> None:
    assembler = AnswerAssembler(max_output_tokens=4)
    first = text("Hel")

    assert assembler.feed(first[:-3]) == ""
    assert assembler.feed(first[-3:] + text("lo")) == "Hello"


def test_the_last_usage_counts() -> None:
    early = event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    assert assemble(early + WHOLE).usage.output_tokens == 3


def test_comments_and_other_fields_of_the_event_stream_are_skipped() -> None:
    assert assemble(b": ping\r\n\r\nevent: x\nid: 3\n" + WHOLE).content == "Hello ☀"


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (text("a") + event({"error": {"message": "worker died"}}) + DONE, "engine-error"),
        (b'error: {"code":500}\n\n' + DONE, "engine-error"),
        (text("a", "abort") + event(USAGE) + DONE, "bad-finish"),
        (text("a") + event(USAGE) + DONE, "no-finish"),
        (text("a", "stop") + DONE, "no-usage"),
        (text("a", "stop") + event(USAGE), "no-done"),
        (b"", "no-finish"),
        (b"data: {\xff\n\n", "bad-event"),
        (b"data: 7\n\n", "bad-event"),
        (b'data: {"usage":{"prompt_tokens":-1,"completion_tokens":2}}\n\n', "bad-event"),
        (b"data: " + b"[" * 9_000 + b"\n\n", "bad-event"),
        (b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n', "bad-event"),
        (event({"choices": [{"index": 1, "delta": {"content": "b"}}]}), "second-choice"),
        (event({"choices": [{"delta": {"tool_calls": [{"id": "1"}]}}]}), "unexpected-tool-calls"),
        (text(None, "stop") + text("more"), "text-after-finish"),
        (WHOLE + event(USAGE), "event-after-done"),
        (b": " + b"x" * stream_limit_bytes(16), "too-large"),
    ],
)
def test_a_stream_that_is_no_success_is_refused(stream: bytes, reason: str) -> None:
    with pytest.raises(MalformedStream) as refused:
        assemble(stream)
    assert refused.value.reason == reason


def test_stream_ends_200_and_done_after_an_error() -> None:
    """Lesson: an engine that failed still says HTTP 200 and `[DONE]`."""
    with pytest.raises(MalformedStream):
        assemble(event({"error": "x"}) + DONE)


@given(st.lists(st.sampled_from([WHOLE, DONE, text("a"), event(USAGE)]) | st.binary(max_size=60)))
def test_any_bytes_are_an_answer_or_malformed(parts: list[bytes]) -> None:
    with contextlib.suppress(MalformedStream):
        assert assemble(b"".join(parts)).finish_reason == "stop"
