"""What a buyer's response format may be, beyond what `InferenceRequest` says of its shape."""

from collections.abc import Mapping

import msgspec
from msgspec import UnsetType

from app.quotes.errors import BadSchema
from supplier_agent.protocol import InferenceRequest

MAX_SCHEMA_BYTES = 16_384
MAX_SCHEMA_DEPTH = 24


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
