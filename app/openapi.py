"""The OpenAPI document: what FastAPI knows, plus the thin routes' own contracts."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from app.kit.raw_routes import JSON, RawRoute
from app.problems import MEDIA_TYPE, Problem

REF = "#/components/schemas/{model}"
READ_ACCESS = "OffpeakRead"
READ_ACCESS_SCHEME = {
    "type": "apiKey",
    "in": "header",
    "name": "Authorization",
    "description": (
        "`OffpeakRead <base64url of {access, signature}>`: a wallet-signed ReadAccess with the "
        "scope of what is read, valid for at most 24 hours."
    ),
}

Document = dict[str, Any]


def document(app: FastAPI, raw: Sequence[RawRoute]) -> Document:
    """Return the document, made once per application; it names the gateway's public address."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            servers=[{"url": app.state.gateway.settings.public_url}],
        )
        add_raw_routes(made, raw)
        for operations in made["paths"].values():
            for operation in operations.values():
                use_problems(operation)
                use_read_access(operation)
        made["components"]["securitySchemes"] = {READ_ACCESS: READ_ACCESS_SCHEME}
        schemas = made["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        app.openapi_schema = made
    return app.openapi_schema


def add_raw_routes(made: Document, raw: Sequence[RawRoute]) -> None:
    """Add paths and schemas of the thin routes."""
    inputs = [(route.request, "validation") for route in raw]
    answers = [answer for route in raw for answer in route.answers.values()]
    outputs = [(answer.model, "serialization") for answer in answers]
    wanted = list(dict.fromkeys([*inputs, *outputs, (Problem, "serialization")]))
    refs, definitions = models_json_schema(wanted, ref_template=REF)  # type: ignore[arg-type]  # a literal mode
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(definitions.get("$defs", {}))
    for route in raw:
        responses = {
            str(status): {
                "description": answer.description,
                "content": {answer.content_type: {"schema": refs[(answer.model, "serialization")]}},
            }
            for status, answer in route.answers.items()
        }
        responses |= {str(status): problem_reference(status) for status in route.refusals}
        made["paths"].setdefault(route.path, {})[route.method.lower()] = {
            "operationId": route.operation_id,
            "summary": route.summary,
            "tags": [route.tag],
            "parameters": list(route.parameters),
            "requestBody": {
                "required": True,
                "content": {JSON: {"schema": refs[(route.request, "validation")]}},
            },
            "responses": responses,
        }


def use_problems(operation: Document) -> None:
    """Replace FastAPI's own refusal by ours, and state what every route may answer."""
    responses = operation["responses"]
    if "422" in responses:
        responses["422"] = problem_reference(422)
    responses.setdefault("default", problem_reference(None))


def use_read_access(operation: Document) -> None:
    """State a signed read access as a security scheme; OpenAPI ignores Authorization elsewhere."""
    parameters = operation.get("parameters", [])
    kept = [each for each in parameters if each["name"] != "Authorization"]
    if len(kept) < len(parameters):
        operation["parameters"] = kept
        operation["security"] = [{READ_ACCESS: []}]
        for status in (401, 403):
            operation["responses"][str(status)] = problem_reference(status)


def problem_reference(status: int | None) -> Document:
    """Return a response object for a refusal."""
    return {
        "description": HTTPStatus(status).phrase if status else "Any other refusal",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}},
    }
