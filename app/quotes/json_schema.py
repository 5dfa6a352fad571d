"""Whether a JSON document is a schema (draft 2020-12), in bounded time.

Quotes are free to ask for, and an engine compiles every schema that it is sent: both must take a
bounded time. So the check is one walk over the schema, and it compiles no pattern: the general
validator took 7 s for a `type` of 3,200 numbers, Python's compiler 14 s for one pattern.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from app.quotes.errors import BadSchema

MAX_SCHEMA_DEPTH = 24
MAX_SUBSCHEMAS = 256
"""llama.cpp took 13 s, and all its slots stood still, for an object of 900 optional properties."""
TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def check_schema(schema: object) -> None:
    """Return if this is a schema of the draft within the limits of depth and parts.

    Raises:
        BadSchema: naming the place that is not.
    """
    _check_depth(schema, depth=0)
    _Walk().check(schema, "#")


def has_type(value: object, types: object) -> bool:
    """Return whether a value is of a type, or of one of a list of types."""
    names = [types] if isinstance(types, str) else types
    assert isinstance(names, list)
    return any(_OF_TYPE[name](value) for name in names)


def _check_depth(node: object, *, depth: int) -> None:
    if depth > MAX_SCHEMA_DEPTH:
        raise BadSchema(f"nested deeper than {MAX_SCHEMA_DEPTH} levels")
    if isinstance(node, Mapping):
        for value in node.values():
            _check_depth(value, depth=depth + 1)
    elif isinstance(node, list):
        for value in node:
            _check_depth(value, depth=depth + 1)


class _Walk:
    """One pass over a schema and all schemas inside it."""

    def __init__(self) -> None:
        self._seen = 0

    def check(self, schema: object, place: str) -> None:
        """Return if this is a schema of the draft; BadSchema names the place that is not."""
        self._seen += 1
        if self._seen > MAX_SUBSCHEMAS:
            raise BadSchema(f"more than {MAX_SUBSCHEMAS} schemas inside one another")
        if isinstance(schema, bool):
            return
        if not isinstance(schema, Mapping):
            raise BadSchema(f"{place}: a schema is an object, true or false")
        for name, value in schema.items():
            self._check_keyword(name, value, f"{place}.{name[:64]}")

    def _check_keyword(self, name: str, value: object, place: str) -> None:
        if name in _SCHEMA:
            self.check(value, place)
        elif name in _SCHEMAS_BY_NAME:
            if not isinstance(value, Mapping):
                raise BadSchema(f"{place}: must be an object of schemas")
            for key, inner in value.items():
                self.check(inner, f"{place}.{key[:64]}")
        elif name in _SCHEMAS:
            if not isinstance(value, list) or not value:
                raise BadSchema(f"{place}: must be a list of schemas, not empty")
            for index, inner in enumerate(value):
                self.check(inner, f"{place}[{index}]")
        elif name in _VALUES:
            fits, wanted = _VALUES[name]
            if not fits(value):
                raise BadSchema(f"{place}: must be {wanted}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)  # type: ignore[operator, call-overload]  # a number, by the line's first part


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_names(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return False
    return all(name != following for name, following in pairwise(sorted(value)))


def _are_types(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return _are_names(names) and bool(names) and TYPES.issuperset(names)  # type: ignore[arg-type]  # a list of names


_SCHEMA: Final = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"}
    | {"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
)
_SCHEMAS_BY_NAME: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
_SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})

_Rule = tuple[Callable[[object], bool], str]
_COUNT: Final[_Rule] = (_is_count, "a whole number, not negative")
_NUMBER: Final[_Rule] = (_is_number, "a number")
_TEXT: Final[_Rule] = (_is_text, "a string")
_FLAG: Final[_Rule] = (lambda value: isinstance(value, bool), "true or false")
_NAMES: Final[_Rule] = (_are_names, "a list of strings, each once")
_LIST: Final[_Rule] = (lambda value: isinstance(value, list), "a list")

_VALUES: Final = MappingProxyType[str, _Rule](
    {
        "type": (_are_types, "one of the seven type names, or a list of them"),
        "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above zero"),  # type: ignore[operator]  # a number, by the line's first part
        "enum": _LIST,
        "examples": _LIST,
        "required": _NAMES,
        "dependentRequired": (
            lambda value: isinstance(value, Mapping) and all(map(_are_names, value.values())),
            "an object of lists of strings",
        ),
        **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _NUMBER),
        **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems"), _COUNT),
        **dict.fromkeys(("maxProperties", "minProperties", "maxContains", "minContains"), _COUNT),
        **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _FLAG),
        **dict.fromkeys(("pattern", "format", "title", "description", "$comment"), _TEXT),
        **dict.fromkeys(("$ref", "$dynamicRef", "$id", "$schema"), _TEXT),
        **dict.fromkeys(("$anchor", "$dynamicAnchor"), _TEXT),
        **dict.fromkeys(("contentEncoding", "contentMediaType"), _TEXT),
    }
)
"""The draft's keywords that hold no schema: what their value must be."""

_OF_TYPE: Final = MappingProxyType[str, Callable[[object], bool]](
    {
        "array": lambda value: isinstance(value, list),
        "boolean": lambda value: isinstance(value, bool),
        "integer": lambda value: _is_number(value) and value == int(value),  # type: ignore[call-overload]  # a number, by the line's first part
        "null": lambda value: value is None,
        "number": _is_number,
        "object": lambda value: isinstance(value, Mapping),
        "string": _is_text,
    }
)
