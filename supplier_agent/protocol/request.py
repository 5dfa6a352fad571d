"""The inference request object: an allow-list with ranges, and its canonical form.

Only fields that the buyer sent are part of the canonical form, and none may be null: the request
digest must not depend on anybody's defaults. A RUN carries the canonical bytes untouched;
`decode_request` gives them their types back. Only what is listed here can reach an engine.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ledger.encoding import canonical_json
from supplier_agent.protocol.errors import BadFrame

MAX_MESSAGES = 256
OUTPUT_TOKEN_LIMIT = 1_000_000
MAX_SEED = 2**32 - 2
"""llama.cpp takes 2^32 - 1 for "any seed": a buyer who named it would not get the same twice."""

ModelName = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9._/-]{0,127}\Z")]
Stop = Annotated[str, Meta(min_length=1, max_length=64)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class Message(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """One turn of the conversation. Text only; a system message may be empty."""

    role: Literal["system", "user", "assistant"]
    content: str


class JsonSchema(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A named JSON schema: an answer keeps it, unless the ceiling cuts it off."""

    name: Annotated[str, Meta(pattern=r"\A[a-zA-Z0-9_-]{1,64}\Z")]
    schema: dict[str, object]


class ResponseFormat(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """How the answer is constrained."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class InferenceRequest(
    msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False, kw_only=True
):
    """A validated request, as far as that is possible without the model."""

    model: ModelName
    messages: Annotated[list[Message], Meta(min_length=1, max_length=MAX_MESSAGES)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=OUTPUT_TOKEN_LIMIT)]
    temperature: Annotated[float, Meta(ge=0, le=2)] | UnsetType = UNSET
    top_p: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | UnsetType = UNSET
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
        """Return the request as JSON objects."""
        built: dict[str, object] = msgspec.to_builtins(self)
        return built


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
