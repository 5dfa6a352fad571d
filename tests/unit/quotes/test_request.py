import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.kit.errors import KitError
from app.kit.raw_routes import decoded
from app.quotes.errors import BadSchema
from app.quotes.json_schema import MAX_SUBSCHEMAS
from app.quotes.response_format import MAX_SCHEMA_BYTES, check_response_format
from app.quotes.schemas import InferenceRequestIn
from supplier_agent.protocol import InferenceRequest
from tests.schemas import ENFORCED

DECODER = msgspec.json.Decoder(InferenceRequest)
PLAIN: dict[str, object] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "max_output_tokens": 5,
}


def read(body: dict[str, object]) -> InferenceRequest:
    return decoded(json.dumps(body).encode(), DECODER)


def with_schema(schema: object) -> InferenceRequest:
    named = {"name": "answer", "schema": schema}
    return read({**PLAIN, "response_format": {"type": "json_schema", "json_schema": named}})


def test_only_what_was_sent_is_in_the_canonical_form() -> None:
    assert read(PLAIN).canonical() == (
        b'{"max_output_tokens":5,"messages":[{"content":"hi","role":"user"}],"model":"m"}'
    )


def test_the_canonical_form_does_not_depend_on_order_or_spelling() -> None:
    messages = '[{"content":"h\\u0069","role":"user"}]'
    text = f'{{"temperature":1.0,"model":"m","max_output_tokens":5,"messages":{messages}}}'
    other = {**PLAIN, "temperature": 1}
    assert decoded(text.encode(), DECODER).canonical() == read(other).canonical()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.one_of(st.floats(allow_nan=False), st.none(), st.text()),
            "top_p": st.one_of(st.floats(-1, 2), st.integers(-1, 2), st.none()),
            "seed": st.one_of(st.integers(-5, 2**33), st.booleans(), st.none()),
            "stop": st.one_of(st.lists(st.text(max_size=70), max_size=6), st.text(), st.none()),
            "presence_penalty": st.one_of(st.floats(-3, 3), st.none()),
            "max_output_tokens": st.one_of(st.integers(-1, 2_000_000), st.none()),
            "model": st.text(max_size=5),
            "n": st.integers(),
        },
    )
)
def test_the_document_and_the_decoder_take_and_refuse_the_same(extra: dict[str, object]) -> None:
    body = {**PLAIN, **extra}
    try:
        InferenceRequestIn.model_validate_json(json.dumps(body), strict=True)
        documented = all(value is not None for value in extra.values())
    except (ValidationError, ValueError):
        documented = False
    try:
        read(body)
        taken = True
    except KitError:
        taken = False
    assert taken == documented


def is_taken(schema: dict[str, object]) -> bool:
    try:
        check_response_format(with_schema(schema))
    except BadSchema:
        return False
    return True


@pytest.mark.parametrize("schema", ENFORCED.values(), ids=ENFORCED)
def test_a_valid_schema_is_taken(schema: dict[str, object]) -> None:
    assert is_taken(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": [*range(3_200), "x"]},
        {"required": [*range(3_200), "x"]},
        {"anyOf": [{"a": 1}] * (MAX_SUBSCHEMAS + 1)},
        {"properties": {f"p{number}": True for number in range(MAX_SUBSCHEMAS + 1)}},
    ],
    ids=["types", "names", "alternatives", "properties"],
)
def test_a_schema_that_costs_a_checker_or_an_engine_seconds_is_refused(
    schema: dict[str, object],
) -> None:
    """The general validator took 7 s for the first, llama.cpp 13 s for a larger last one."""
    with pytest.raises(BadSchema):
        check_response_format(with_schema(schema))


def test_no_pattern_of_a_schema_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's compiler took 14 s for a case-insensitive class of 1,500 ranges."""
    compiled: list[object] = []
    monkeypatch.setattr(re, "compile", compiled.append)
    classes = "".join(f"{chr(0x100 + number)}-\uffff" for number in range(1_500))

    with pytest.raises(BadSchema):
        check_response_format(with_schema({"type": "string", "pattern": f"(?i)[{classes}]"}))

    assert not compiled


def deep(levels: int) -> dict[str, object]:
    schema: dict[str, object] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"properties": []},
        {"minimum": "1"},
        {"required": "a"},
        {"$ref": "https://elsewhere.example/schema.json"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"enum": ["x" * MAX_SCHEMA_BYTES]},
        deep(30),
        {"type": ["string", "string"]},
        {"type": []},
        {"properties": {"a": "string"}},
        {"anyOf": []},
        {"items": [{"type": "string"}]},
        {"required": ["a", "a"]},
        {"required": [1]},
        {"minLength": -1},
        {"minLength": True},
        {"maxItems": 1.5},
        {"multipleOf": 0},
        {"uniqueItems": "yes"},
        {"pattern": 1},
        {"enum": "a"},
        # llama.cpp does not compile these
        {"$ref": "#/nope"},
        {"$ref": "#"},
        {"$ref": "#x", "$defs": {"x": {"$anchor": "x", "const": 5}}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 5}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"const": 1}, {"$ref": "#/$defs/a"}]}}},
        {"properties": {"a": True}},
        {"type": "array", "items": False},
        {"type": "array", "items": {}, "maxItems": 2000},
        # and ignores these
        {"type": "string", "pattern": "abc"},
        {"type": "string", "pattern": "^(?!a)[a-z]{3}$"},
        {"type": "string", "pattern": r"^\d{3}$"},
        {"type": "string", "pattern": r"^(a|b)\1$"},
        {"type": "string", "pattern": "^.{3}$"},
        {"type": "string", "pattern": "^[^a]{3}$"},
        {"type": "string", "pattern": "^a+$", "minLength": 5},
        {"type": "string", "format": "email"},
        {"type": "number", "minimum": 10, "maximum": 20},
        {"type": ["integer", "null"], "minimum": 10},
        {"minimum": 20},
        {"type": "integer", "multipleOf": 7},
        {"type": "integer", "enum": ["a", "b"]},
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
        {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 3}},
        {"type": "object", "required": ["a"]},
        {"type": "object", "additionalProperties": {"type": "boolean"}, "minProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^x"}},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"allOf": [{"type": "integer"}, {"minimum": 5}]},
        {"type": "integer", "not": {"const": 1}},
        {"type": "integer", "if": {"type": "integer"}, "then": {"minimum": 5}},
        {"$ref": "#/$defs/x", "minimum": 5, "$defs": {"x": {"type": "integer"}}},
        {"type": "object", "properties": {"a": {"const": 1}}, "anyOf": [{"type": "object"}]},
    ],
)
def test_a_schema_that_is_wrong_large_deep_or_not_enforced_by_the_engine_is_refused(
    schema: dict[str, object],
) -> None:
    with pytest.raises(BadSchema):
        check_response_format(with_schema(schema))
