"""The inference request object, as a buyer's request digest covers it.

A RUN carries its canonical (RFC 8785) bytes untouched; `decode_request` gives them types.
Only what is listed here can reach an engine.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from supplier_agent.protocol.errors import BadFrame


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. Content is text only; a system message may be empty, as the gateway allows."""

    role: Literal["system", "user", "assistant"]
    content: str


class JsonSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named JSON schema; its bytes are handed to the engine as they came."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    schema: msgspec.Raw


class ResponseFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Constrains the answer to a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class InferenceRequest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What a buyer asked for. Absent fields get the agent's explicit defaults."""

    model: Annotated[str, Meta(min_length=1, max_length=128)]
    messages: Annotated[tuple[Message, ...], Meta(min_length=1, max_length=4096)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_048_576)]
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    seed: Annotated[int, Meta(ge=0, lt=2**32)] | None = None
    stop: Annotated[tuple[str, ...], Meta(max_length=16)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    response_format: ResponseFormat | None = None


_DECODER = msgspec.json.Decoder(InferenceRequest)


def decode_request(canonical: bytes) -> InferenceRequest:
    """Return the typed request.

    Raises:
        BadFrame: not an inference request object.
    """
    try:
        return _DECODER.decode(canonical)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFrame(f"no inference request: {error}") from error
