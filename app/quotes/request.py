"""What a buyer may ask for: an allow-list with ranges, decoded strictly, and its canonical form.

Only fields the buyer sent are part of the canonical form, and none may be null: the request
digest must not depend on our defaults.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.quotes.errors import BadSchema
from ledger.encoding import canonical_json

MAX_MESSAGES = 256
MAX_SCHEMA_BYTES = 16_384
MAX_SCHEMA_DEPTH = 24
OUTPUT_TOKEN_LIMIT = 1_000_000

ModelName = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9._/-]{0,127}\Z")]
Stop = Annotated[str, Meta(min_length=1, max_length=64)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class Strict(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A wire object that refuses fields it does not know."""


class Message(Strict, frozen=True):
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class JsonSchema(Strict, frozen=True):
    """A named JSON schema that the answer must satisfy."""

    name: Annotated[str, Meta(pattern=r"\A[a-zA-Z0-9_-]{1,64}\Z")]
    schema: dict[str, object]


class ResponseFormat(Strict, frozen=True):
    """How the answer is constrained."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class InferenceRequest(Strict, frozen=True):
    """A validated request, as far as that is possible without the model."""

    model: ModelName
    messages: Annotated[list[Message], Meta(min_length=1, max_length=MAX_MESSAGES)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=OUTPUT_TOKEN_LIMIT)]
    temperature: Annotated[float, Meta(ge=0, le=2)] | UnsetType = UNSET
    top_p: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] | UnsetType = UNSET
    stop: Annotated[list[Stop], Meta(min_length=1, max_length=4)] | UnsetType = UNSET
    presence_penalty: Penalty | UnsetType = UNSET
    frequency_penalty: Penalty | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET

    def canonical(self) -> bytes:
        """Return the RFC 8785 form of exactly the fields the buyer sent.

        Raises:
            NotCanonical: text or a schema number has no such form.
        """
        return canonical_json(self.plain())

    def plain(self) -> dict[str, object]:
        """Return the request as JSON objects, for the agent and for storage."""
        built: dict[str, object] = msgspec.to_builtins(self)
        return built


def check_response_format(request: InferenceRequest) -> None:
    """Return if the schema of the response format, if any, is one we accept.

    Raises:
        BadSchema: over the size or depth limit, refers outside itself, or is no JSON schema
            (draft 2020-12).
    """
    if isinstance(request.response_format, UnsetType):
        return
    schema = request.response_format.json_schema.schema
    size = len(msgspec.json.encode(schema))
    if size > MAX_SCHEMA_BYTES:
        raise BadSchema(f"schema of {size} bytes; at most {MAX_SCHEMA_BYTES} are taken")
    _check_nodes(schema, depth=0)
    # Imported here: it costs a tenth of a second and most requests have no schema.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadSchema(f"{error.json_path}: {error.message[:200]}") from None
    except RecursionError:
        raise BadSchema("too deep") from None


def _check_nodes(node: object, *, depth: int) -> None:
    if depth > MAX_SCHEMA_DEPTH:
        raise BadSchema(f"nested deeper than {MAX_SCHEMA_DEPTH} levels")
    if isinstance(node, Mapping):
        for name, value in node.items():
            outside = isinstance(value, str) and not value.startswith("#")
            if name in {"$ref", "$dynamicRef", "$id", "$schema"} and outside:
                raise BadSchema(f"{name} may point only inside the schema")
            _check_nodes(value, depth=depth + 1)
    elif isinstance(node, list):
        for value in node:
            _check_nodes(value, depth=depth + 1)
