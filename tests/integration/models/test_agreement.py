"""The gateway's count of input tokens against the engine's, prompt by prompt."""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from app.models.catalogue import Catalogue
from app.models.gguf import read_metadata
from app.models.make_tokenizer import build_tokenizer
from app.models.messages import Message
from app.models.tokenizer import CountingTokenizer
from app.models.weights import cache_folder, fetch_weights
from tests.integration.prompts import (
    COUNT,
    LONG_TOKENS,
    Conversation,
    conversations,
    long_text,
)
from tests.schemas import ENFORCED

# One worker for all of it: every worker that takes a part starts an engine of its own.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("models-engine"),
]

CATALOGUE = Catalogue()
RELEASE = CATALOGUE.get("smollm2-135m-instruct")


@pytest.fixture(scope="module")
def tokenizer() -> CountingTokenizer:
    return CountingTokenizer(RELEASE, CATALOGUE.folder_of(RELEASE))


@pytest.fixture(scope="module")
def prompts(tokenizer: CountingTokenizer) -> dict[str, Conversation]:
    """All 200; the long ones are cut to just below their size, the last to exactly 2,047."""
    found = dict(conversations())

    def count(text: str) -> int:
        return tokenizer.count_prompt((Message("user", text),))

    for size in LONG_TOKENS:
        words = bisect_right(range(size), size, key=lambda words: count(long_text(words))) - 1
        text = long_text(words)
        text += " a" * (size - count(text))
        assert count(text) == size
        found[f"long-{size}"] = (Message("user", text),)
    assert len(found) == COUNT
    return found


@pytest.fixture
def engine(engine_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=engine_url, timeout=120) as client:
        yield client


def wire(conversation: Conversation) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in conversation]


def ask(engine: httpx.Client, conversation: Conversation, **options: object) -> Any:
    body = {"messages": wire(conversation), "max_tokens": 1, "temperature": 0, **options}
    reply = engine.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.long
def test_the_engine_uses_as_many_input_tokens_on_every_fifth_prompt_and_the_longest(
    engine: httpx.Client, tokenizer: CountingTokenizer, prompts: dict[str, Conversation]
) -> None:
    """What it reports after having read them; all 200 are compared token by token below."""
    differing = {}
    short = [name for name in prompts if not name.startswith("long-")]
    for name in (*short[::5], f"long-{LONG_TOKENS[-1]}"):
        conversation = prompts[name]
        ours = tokenizer.count_prompt(conversation)
        engines = ask(engine, conversation)["usage"]["prompt_tokens"]
        if ours != engines:
            differing[name] = (ours, engines)
    assert differing == {}


def test_the_engine_sees_the_same_token_ids_on_200_prompts(
    engine: httpx.Client, tokenizer: CountingTokenizer, prompts: dict[str, Conversation]
) -> None:
    differing = []
    for name, conversation in prompts.items():
        rendered = engine.post("/apply-template", json={"messages": wire(conversation)}).json()
        body = {"content": rendered["prompt"], "add_special": True, "parse_special": True}
        tokens = engine.post("/tokenize", json=body).json()["tokens"]
        if tokens != tokenizer.encode_prompt(conversation):
            differing.append(name)
    assert differing == []


def test_a_json_schema_adds_no_input_tokens(
    engine: httpx.Client, tokenizer: CountingTokenizer
) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    constrained = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    conversation = (Message("user", "Where is my parcel 1047?"),)
    usage = ask(engine, conversation, response_format=constrained)["usage"]
    assert usage["prompt_tokens"] == tokenizer.count_prompt(conversation)


@pytest.mark.parametrize("schema", ENFORCED.values(), ids=ENFORCED)
def test_an_answer_that_ends_by_itself_keeps_any_schema_that_a_quote_takes(
    engine: httpx.Client, schema: dict[str, object]
) -> None:
    constrained = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    conversation = (Message("user", "Give me JSON."),)
    found = ask(engine, conversation, response_format=constrained, max_tokens=60, temperature=1)
    choice = found["choices"][0]
    if choice["finish_reason"] == "stop":  # cut at the ceiling it is a prefix of such an answer
        assert Draft202012Validator(schema).is_valid(json.loads(choice["message"]["content"]))


def test_an_answer_counts_as_many_tokens_as_were_generated(
    engine: httpx.Client, tokenizer: CountingTokenizer
) -> None:
    """Plus the end-of-turn token when the model stopped by itself."""
    reply = ask(engine, (Message("user", "Name the seven days of the week."),), max_tokens=40)
    (choice,) = reply["choices"]
    stopped = choice["finish_reason"] == "stop"
    recount = tokenizer.count_text(choice["message"]["content"]) + stopped
    assert abs(reply["usage"]["completion_tokens"] - recount) <= 1


def test_the_canary_gets_its_exact_answer(engine: httpx.Client) -> None:
    canary = RELEASE.canary
    reply = ask(engine, canary.messages, max_tokens=canary.max_output_tokens)
    assert reply["choices"][0]["message"]["content"] == canary.answer


def test_the_committed_tokenizer_is_what_the_weights_say() -> None:
    metadata = read_metadata(fetch_weights(RELEASE, cache_folder(os.environ)))
    made = build_tokenizer(metadata).to_str(pretty=False).encode()
    pinned = {file.name: file.sha256 for file in RELEASE.files}
    assert sha256(made).hexdigest() == pinned["tokenizer.json"]
    template = str(metadata["tokenizer.chat_template"]).encode()
    assert sha256(template).hexdigest() == pinned["chat_template.jinja"]
