"""JSON schemas that we accept, one per keyword; the real engine must keep each."""

from collections.abc import Mapping

ONE = {"const": 1}

ENFORCED: Mapping[str, dict[str, object]] = {
    "string": {"type": "string", "minLength": 5, "maxLength": 8},
    "pattern": {"type": "string", "pattern": "^[a-c]{3}-(?:ab|cd)+x?$"},
    "escaped": {"type": "string", "pattern": r"^a\.[0-9]{1,4}$"},
    "date": {"type": "string", "format": "date"},
    "date-time": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "integer": {"type": "integer", "minimum": -5, "maximum": 20},
    "exclusive": {"type": "integer", "exclusiveMinimum": 10, "exclusiveMaximum": 12},
    "enum": {"enum": ["a", 1, None, {"x": 1}], "description": "one of these"},
    "const": {"type": "string", "const": "hello"},
    "array": {"type": "array", "items": ONE, "minItems": 2, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [ONE, {"const": 2}]},
    "object": {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    "any of": {"anyOf": [ONE, {"type": "boolean"}]},
    "types": {"type": ["integer", "null"]},
    "reference": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/properties/a"}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "$defs": {"x": {"enum": ["yes", "no"]}},
    },
    "one definition twice": {
        "anyOf": [{"$ref": "#/$defs/x"}, {"anyOf": [{"$ref": "#/$defs/x"}, {"const": 2}]}],
        "$defs": {"x": {"const": 1}},
    },
    "implied": {"properties": {"a": ONE}, "required": ["a"], "additionalProperties": False},
    "escapes": {
        "type": "object",
        "properties": {'\u00e9"\u2603': {"const": "\u00fc\n"}},
        "required": ['\u00e9"\u2603'],
        "additionalProperties": False,
    },
}
