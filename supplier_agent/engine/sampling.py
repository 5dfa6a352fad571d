"""The body an engine gets: only fields we know, each sampling parameter said outright.

Engine defaults differ and change; a request that names none must not depend on them.
"""

from typing import Final, TypeVar

import msgspec
from msgspec import UnsetType

from supplier_agent.protocol import InferenceRequest

Sent = TypeVar("Sent")

_RANDOM_SEED: Final = 4_294_967_295
"""llama.cpp's word for a seed of its own choice."""


class SamplingDefaults(msgspec.Struct, frozen=True):
    """What a request gets where it says nothing; a release may name its own."""

    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


def engine_body(request: InferenceRequest, *, slot: int, defaults: SamplingDefaults) -> bytes:
    """Return the JSON for `/v1/chat/completions` of llama.cpp.

    Always streamed with usage, one choice, in the slot the agent chose, and without the prefix
    cache: its timing would tell one customer about another's prompt (CVE-2025-46570).
    """
    body: dict[str, object] = {
        "model": request.model,
        "messages": request.messages,
        "max_tokens": request.max_output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 1,
        "id_slot": slot,
        "cache_prompt": False,
        "temperature": _either(request.temperature, defaults.temperature),
        "top_p": _either(request.top_p, defaults.top_p),
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "seed": _either(request.seed, _RANDOM_SEED),
        "presence_penalty": _either(request.presence_penalty, defaults.presence_penalty),
        "frequency_penalty": _either(request.frequency_penalty, defaults.frequency_penalty),
        "stop": _either(request.stop, []),
    }
    if not isinstance(request.response_format, UnsetType):
        body["response_format"] = request.response_format
    return msgspec.json.encode(body)


def _either(asked: Sent | UnsetType, default: Sent) -> Sent:
    return default if isinstance(asked, UnsetType) else asked
