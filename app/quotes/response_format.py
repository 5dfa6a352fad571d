"""What a buyer's response format may be, beyond what `InferenceRequest` says of its shape.

An allow-list: only what the serving engine's grammar really enforces (tried on llama.cpp b11549,
`tests/integration/models/test_agreement.py`). What it would silently ignore (`multipleOf`,
`uniqueItems`, `oneOf`, most regular expressions) or not compile (a `$ref` that leads nowhere) is
refused here: an accepted schema is kept by every answer that ends by itself.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec
from msgspec import UnsetType

from app.quotes.errors import BadSchema
from app.quotes.json_schema import TYPES, check_schema, has_type
from supplier_agent.protocol import InferenceRequest

MAX_SCHEMA_BYTES = 16_384
MAX_REPEATS = 500
"""Most repeats that a schema may count; the engine's grammar takes fewer than 2,000."""

Schema = Mapping[str, object]

ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
DEFINITIONS = frozenset({"$defs", "definitions"})
ALONE = ("$ref", "anyOf")
"""Keywords whose neighbours the engine ignores."""
OF_TYPE = MappingProxyType(
    {
        "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
        "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
        "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
        "object": frozenset({"properties", "required", "additionalProperties"}),
    }
)
FORMATS = frozenset({"date", "time", "date-time", "uuid"})
TOGETHER = (
    frozenset({"pattern", "format", "minLength"}),
    frozenset({"pattern", "format", "maxLength"}),
    frozenset({"prefixItems", "items"}),
    frozenset({"prefixItems", "minItems"}),
    frozenset({"prefixItems", "maxItems"}),
)
"""Of each set the engine keeps only one."""

_ATOM = (
    r"(?:[A-Za-z0-9 _:;,@#%&/=!~'<>-]|\\[.^$*+?()\[\]{}|/-]"
    r"|\[(?!\^)[A-Za-z0-9 _:;,@#%&/=!~'<>.+*?()-]+\])"
)
_TIMES = r"(?:[?*+]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})?"
_TERMS = rf"(?:{_ATOM}{_TIMES})*"
PATTERN = re.compile(rf"\^(?:{_ATOM}{_TIMES}|\((?:\?:)?{_TERMS}(?:\|{_TERMS})*\){_TIMES})*\$")
"""Anchored at both ends: literals, plain classes, one level of groups, greedy repeats."""


def check_response_format(request: InferenceRequest) -> None:
    """Return if the schema of the response format, if any, is one that answers will keep.

    Raises:
        BadSchema: over the size or depth limit, no JSON schema (draft 2020-12), or with a keyword
            or a combination that the engine's grammar does not enforce.
    """
    if isinstance(request.response_format, UnsetType):
        return
    schema = request.response_format.json_schema.schema
    size = len(msgspec.json.encode(schema))
    if size > MAX_SCHEMA_BYTES:
        raise BadSchema(f"schema of {size} bytes; at most {MAX_SCHEMA_BYTES} are taken")
    check_schema(schema)
    for path, node in _nodes(schema, "#"):
        _check_node(path, node)
        _check_reference(schema, path, node)


def _nodes(node: object, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield every schema in a schema with its place.

    Raises:
        BadSchema: `true` or `false` stands where a schema is meant; the engine compiles neither.
    """
    if not isinstance(node, Mapping):
        raise BadSchema(f"{path}: only an object can be a schema here")
    yield path, node
    for name in (*DEFINITIONS, "properties"):
        named = node.get(name)
        for key, value in named.items() if isinstance(named, Mapping) else ():
            yield from _nodes(value, f"{path}/{name}/{key}")
    for name in ("anyOf", "prefixItems"):
        listed = node.get(name)
        for place, value in enumerate(listed if isinstance(listed, list) else ()):
            yield from _nodes(value, f"{path}/{name}/{place}")
    if "items" in node:
        yield from _nodes(node["items"], f"{path}/items")
    if not isinstance(node.get("additionalProperties", False), bool):
        yield from _nodes(node["additionalProperties"], f"{path}/additionalProperties")


def _check_node(path: str, node: Schema) -> None:
    said = node.keys() - ANNOTATIONS - DEFINITIONS
    for name in ALONE:
        if name in said and said != {name}:
            raise BadSchema(f"{path}: {name} must stand alone, the rest would be ignored")
    if said & set(ALONE):
        return
    if said & {"enum", "const"}:
        _check_values(path, node, said)
        return
    implied = "object" if "properties" in said else "array" if "items" in said else None
    kind = node.get("type", implied)
    allowed = OF_TYPE.get(kind, frozenset()) if isinstance(kind, str) else frozenset[str]()
    for name in sorted(said - {"type"} - allowed):
        raise BadSchema(f"{path}: {name} is not enforced by the engine here (type: {kind!r:.40})")
    for few in TOGETHER:
        if len(said & few) > 1:
            raise BadSchema(f"{path}: of {', '.join(sorted(said & few))} only one is enforced")
    _check_figures(path, node)
    _check_text(path, node)


def _check_values(path: str, node: Schema, said: "set[str] | frozenset[str]") -> None:
    values = [node["const"]] if "const" in node else node["enum"]
    assert isinstance(values, list)
    if said - {"type", "enum", "const"} or {"enum", "const"} <= said:
        raise BadSchema(f"{path}: enum or const may have only a type beside it")
    if not values or not all(has_type(one, node.get("type", list(TYPES))) for one in values):
        raise BadSchema(f"{path}: a value is not of the type beside it")


def _check_figures(path: str, node: Schema) -> None:
    for name in ("minLength", "maxLength", "minItems", "maxItems"):
        figure = node.get(name, 0)
        if not isinstance(figure, int) or figure > MAX_REPEATS:
            raise BadSchema(f"{path}: {name} may be at most {MAX_REPEATS}")
    for name in OF_TYPE["integer"]:
        if not isinstance(node.get(name, 0), int):
            raise BadSchema(f"{path}: {name} must be a whole number")
    required, properties = node.get("required", []), node.get("properties", {})
    assert isinstance(required, list)
    assert isinstance(properties, Mapping)
    for name in required:
        if name not in properties:
            raise BadSchema(f"{path}: required {name!r:.60} is not among the properties")


def _check_text(path: str, node: Schema) -> None:
    pattern = node.get("pattern")
    if pattern is not None and not (isinstance(pattern, str) and PATTERN.fullmatch(pattern)):
        raise BadSchema(
            f"{path}: pattern must be ^...$ of literals, plain classes, groups and repeats"
        )
    if node.get("format", "date") not in FORMATS:
        raise BadSchema(f"{path}: format may be {', '.join(sorted(FORMATS))}")


def _check_reference(root: Schema, path: str, node: Schema) -> None:
    """Refuse a `$ref` that leads nowhere, or back to itself without anything in between."""
    waiting, seen = _next(root, path, node), set[int]()
    while waiting:
        one = waiting.pop()
        if one is node:
            raise BadSchema(f"{path}: leads to itself")
        if id(one) not in seen:
            seen.add(id(one))
            waiting.extend(_next(root, path, one))


def _next(root: Schema, path: str, node: Schema) -> list[Schema]:
    """Return the schemas that this one stands for without a character of its own."""
    branches = node.get("anyOf", [])
    assert isinstance(branches, list)
    if "$ref" in node:
        return [*branches, _resolved(root, path, str(node["$ref"]))]
    return list(branches)


def _resolved(root: Schema, path: str, reference: str) -> Schema:
    found: object = root
    steps = reference.removeprefix("#/").split("/") if reference.startswith("#/") else [""]
    for step in steps:
        match found:
            case Mapping() if step in found and not {"~", "%"} & set(step):
                found = found[step]
            case list() if step.isascii() and step.isdigit() and int(step[:4]) < len(found):
                found = found[int(step[:4])]
            case _:
                raise BadSchema(f"{path}: $ref {reference!r:.60} names nothing in this schema")
    if not isinstance(found, Mapping):
        raise BadSchema(f"{path}: $ref {reference!r:.60} is no schema")
    return found
