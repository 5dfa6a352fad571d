"""Control frames: one JSON object in one WebSocket text message, told apart by `type`.

Unknown fields and types are refused, so a new meaning needs a new protocol version. Leases, jobs
and agents appear as prefixed lower-case UUIDs, digests as 64 and signatures as 128 hex digits.
"""

from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from supplier_agent.protocol.errors import BadFrame

PROTOCOL_VERSION = 1
HEARTBEAT_SECONDS = 5.0
SUSPECT_SECONDS = 15.0
DEAD_SECONDS = 25.0
MAX_BEFORE_HELLO_BYTES = 16_384
"""Largest WebSocket message either side takes before WELCOME."""
MAX_CONTROL_BYTES = 1_048_576
"""Largest control frame after WELCOME; a RUN with its request is the largest there is."""
MAX_HELD_LEASES = 256

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
AgentId = Annotated[str, Meta(pattern=rf"\Aagent_{_UUID}\Z")]
LeaseId = Annotated[str, Meta(pattern=rf"\Alease_{_UUID}\Z")]
JobId = Annotated[str, Meta(pattern=rf"\Ajob_{_UUID}\Z")]
SessionId = Annotated[str, Meta(pattern=rf"\A{_UUID}\Z")]
Hex32 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Hex64 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{128}\Z")]
Name = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9._-]{0,127}\Z")]
Detail = Annotated[str, Meta(max_length=1024)]
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Rate = Annotated[float, Meta(gt=0, le=1e9)]


class _Control(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag=str.lower,
    tag_field="type",
):
    """A control frame; its `type` is its class's name in lower case."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A value inside a control frame."""


class Gpu(_Part, frozen=True):
    """What the host says it has. Shown to operators; never priced, never trusted."""

    name: Annotated[str, Meta(max_length=128)]
    count: Annotated[int, Meta(ge=1, le=1024)]
    memory_mib: Count


class Usage(_Part, frozen=True):
    """Tokens as the engine counted them; cached ones are part of the input."""

    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count


class Challenge(_Control, frozen=True):
    """Gateway, first message: 32 random bytes (hex) for this connection only."""

    nonce: Hex32


class Hello(_Control, frozen=True):
    """Agent, second message: who dials, proved by its device key (see `hello`).

    `session` is new for every connection, `boot_id` for every start of the agent. Leases that
    `held_leases` does not name are lost at once; for each one named the agent sends its stream
    again from seq 0, then its DONE or FAIL if it has ended.
    """

    version: Annotated[int, Meta(ge=1, lt=2**16)]
    agent_id: AgentId
    session: SessionId
    host: Annotated[str, Meta(min_length=1, max_length=255)]
    boot_id: SessionId
    signature: Hex64
    held_leases: Annotated[tuple[LeaseId, ...], Meta(max_length=MAX_HELD_LEASES)] = ()
    gpu: Gpu | None = None


class Welcome(_Control, frozen=True):
    """Gateway: the session is live under this epoch. Heartbeats go both ways at this interval."""

    epoch: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    heartbeat_seconds: Annotated[float, Meta(gt=0, le=60)]
    dead_seconds: Annotated[float, Meta(gt=0, le=600)]


class Refused(_Control, frozen=True):
    """Gateway: this connection ends.

    Codes before WELCOME: `unsupported-version`, `unknown-agent`, `bad-signature`, `suspended`,
    `revoked`, `bad-frame`. After it: `superseded` (a newer session of this agent), `suspended`,
    `revoked`, `bad-frame`.
    """

    code: Annotated[str, Meta(pattern=r"\A[a-z][a-z-]{0,63}\Z")]
    detail: Detail = ""


class Capacity(_Control, frozen=True):
    """Agent: what one deployment offers now. The whole truth of `offered`; replaces the last one.

    `ask_nano_per_slot_second` is the supplier's price; `offer_until` is unix seconds. Speeds are
    per slot, measured by the agent's own probe. `gpu_activity` (0 to 1) is telemetry: null
    without a GPU, and never part of a price.
    """

    deployment: Name
    release: Name
    release_fingerprint: Hex32
    capacity_class: Literal["flexible", "reclaimable"]
    region: Name
    ask_nano_per_slot_second: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    offered: Annotated[int, Meta(ge=0, le=4096)]
    offer_until: Annotated[int, Meta(ge=0, lt=2**53)]
    prefill_tokens_per_second: Rate
    decode_tokens_per_second: Rate
    gpu_activity: Annotated[float, Meta(ge=0, le=1)] | None = None


class Run(_Control, frozen=True):
    """Gateway: run this job under this lease, which has committed. The lease is the fence.

    `request` is the canonical inference request object itself; `request_digest` covers its bytes
    with `salt` (`ledger.commitment.request_digest`), which the agent checks before it signs.
    The stream's id is `stream_of(lease)`. The agent stops when `remaining_seconds` after receipt
    have passed on its monotonic clock.
    """

    lease: LeaseId
    job: JobId
    deployment: Name
    release: Name
    remaining_seconds: Annotated[float, Meta(gt=0, le=86_400)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_048_576)]
    salt: Hex32
    request_digest: Hex32
    request: msgspec.Raw


class Accept(_Control, frozen=True):
    """Agent, within 2 s of RUN: a slot is working on it. A repeated RUN is accepted again."""

    lease: LeaseId


class Busy(_Control, frozen=True):
    """Agent: no slot for it, nothing started, nobody's fault. The job may go elsewhere."""

    lease: LeaseId
    detail: Detail = ""


class First(_Control, frozen=True):
    """Agent: the engine gave its first token; DATA frames follow."""

    lease: LeaseId


class Done(_Control, frozen=True):
    """Agent: the stream was a success (`AnswerAssembler` took it); no DATA follows.

    `stream_bytes` is the sum of its DATA payloads: fewer have arrived means a frame was lost.

    `statement` is the canonical JSON of `ledger.statement.SupplierStatement`, signed with the
    device key; `response_digest` is `answer_digest` of what the DATA frames assemble to.
    """

    lease: LeaseId
    finish_reason: Literal["stop", "length", "tool_calls"]
    usage: Usage
    stream_bytes: Count
    response_digest: Hex32
    release_fingerprint: Hex32
    statement: Annotated[str, Meta(max_length=4096)]
    statement_signature: Hex64


class Cancelled(_Control, frozen=True):
    """Agent: the job was stopped as CANCEL asked, and its engine confirms the slot is free."""

    lease: LeaseId
    stream_bytes: Count


FailKind: TypeAlias = Literal[
    "bad-request",  # the engine answered 4xx, or the digest is not the request's
    "engine-busy",  # 429 or 503: no fault
    "engine-error",  # an error event, another 5xx, a refused connection
    "engine-lost",  # the engine's process ended or closed the stream half way
    "malformed-stream",  # HTTP 200, but not a success by the rules of `answer`
    "too-large",  # more bytes than the ceiling allows
    "timed-out",  # connect, first token, between tokens
    "lease-ended",  # the lease's time was over
    "wrong-release",  # this deployment does not serve that release
    "stopping",  # the agent was told to exit and its deadline passed
]


class Fail(_Control, frozen=True):
    """Agent: no result; `retryable` says whether another try may help.

    Sent at once. Where the engine has yet to free the slot `slot_free` is false; the slot stays
    taken, and the same FAIL comes again with true when the engine confirms.
    """

    lease: LeaseId
    kind: FailKind
    retryable: bool
    slot_free: bool = True
    detail: Detail = ""


class Cancel(_Control, frozen=True):
    """Gateway: stop this lease. Answered by CANCELLED, or by a DONE or FAIL that came first."""

    lease: LeaseId


class Settled(_Control, frozen=True):
    """Gateway: forget this lease; what became of it has committed.

    Sent for every DONE, FAIL and CANCELLED: the agent keeps each until then and sends it again in
    its next session. For a lease that still runs it means stop, and tell nothing.
    `refused`: the result came late or under a lost fence and counted for nothing.
    """

    lease: LeaseId
    outcome: Literal["settled", "refused"] = "settled"


class Heartbeat(_Control, frozen=True):
    """Both: alive. `seq` counts from 0 in each direction of a session."""

    seq: Annotated[int, Meta(ge=0, lt=2**53)]


class Reason(_Control, frozen=True):
    """Gateway: why this agent gets no work now, in words for its owner; empty: it may get some."""

    text: Detail


AgentMessage: TypeAlias = (
    Hello | Capacity | Accept | Busy | First | Done | Cancelled | Fail | Heartbeat
)
GatewayMessage: TypeAlias = (
    Challenge | Welcome | Refused | Run | Cancel | Settled | Reason | Heartbeat
)

_FROM_AGENT: msgspec.json.Decoder[AgentMessage] = msgspec.json.Decoder(AgentMessage)
_FROM_GATEWAY: msgspec.json.Decoder[GatewayMessage] = msgspec.json.Decoder(GatewayMessage)
_ENCODER = msgspec.json.Encoder()


def encode(message: AgentMessage | GatewayMessage) -> str:
    """Return the text of a control frame."""
    return _ENCODER.encode(message).decode()


def decode_from_agent(text: str | bytes, *, limit: int = MAX_CONTROL_BYTES) -> AgentMessage:
    """Return what an agent said.

    Raises:
        BadFrame: over `limit` bytes, not JSON, or not exactly one of the agent's messages.
    """
    return _decode(_FROM_AGENT, text, limit)


def decode_from_gateway(text: str | bytes, *, limit: int = MAX_CONTROL_BYTES) -> GatewayMessage:
    """Return what a gateway said; raises as `decode_from_agent` does."""
    return _decode(_FROM_GATEWAY, text, limit)


_M = TypeVar("_M")


def _decode(decoder: "msgspec.json.Decoder[_M]", text: str | bytes, limit: int) -> _M:
    if len(text) > limit:
        raise BadFrame(f"control frame of {len(text)} is over {limit} bytes")
    try:
        raw = text.encode() if isinstance(text, str) else text
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame(f"no control frame: {error}") from error
