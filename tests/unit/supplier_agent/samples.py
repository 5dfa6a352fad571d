"""Messages of the agent channel with valid content, for the tests to bend."""

import uuid
from dataclasses import dataclass

import msgspec

from ledger.commitment import request_digest
from supplier_agent.protocol import (
    Accept,
    AgentMessage,
    Busy,
    Cancel,
    Cancelled,
    Capacity,
    Challenge,
    Done,
    Fail,
    First,
    GatewayMessage,
    Heartbeat,
    Hello,
    Reason,
    Refused,
    Run,
    Settled,
    Usage,
    Welcome,
)

LEASE = "lease_0199f3a0-0000-7000-8000-000000000001"
JOB = "job_0199f3a0-0000-7000-8000-000000000002"
AGENT = "agent_0199f3a0-0000-7000-8000-000000000003"
SESSION = "0199f3a0-0000-7000-8000-000000000004"
SALT = "ab" * 32


def new_lease() -> str:
    """A fresh lease id."""
    return f"lease_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Job:
    """What a RUN asks for."""

    text: str = "Say hello."
    max_output_tokens: int = 16
    remaining_seconds: float = 60.0
    deployment: str = "demo"
    release: str = "smollm2-135m-instruct"
    extra: str = ""
    """More members of the request object, in JSON, each with its comma in front."""


def run_message(lease: str, job: Job | None = None) -> Run:
    """A RUN whose digest is right."""
    asked = job or Job()
    request = (
        b'{"max_output_tokens":%d,"messages":[{"content":%s,"role":"user"}],"model":"%s"%s}'
        % (
            asked.max_output_tokens,
            msgspec.json.encode(asked.text),
            asked.release.encode(),
            asked.extra.encode(),
        )
    )
    return Run(
        lease=lease,
        job=JOB,
        deployment=asked.deployment,
        release=asked.release,
        remaining_seconds=asked.remaining_seconds,
        max_output_tokens=asked.max_output_tokens,
        salt=SALT,
        request_digest=request_digest(bytes.fromhex(SALT), request).hex(),
        request=msgspec.Raw(request),
    )


FROM_AGENT: tuple[AgentMessage, ...] = (
    Hello(
        version=1,
        agent_id=AGENT,
        session=SESSION,
        host="gpu-7",
        boot_id=SESSION,
        signature="0" * 128,
        held_leases=(LEASE,),
    ),
    Capacity(
        deployment="demo",
        release="smollm2-135m-instruct",
        release_fingerprint="0" * 64,
        capacity_class="flexible",
        region="local",
        ask_nano_per_slot_second=1000,
        offered=4,
        offer_until=2_000_000_000,
        prefill_tokens_per_second=100.0,
        decode_tokens_per_second=50.0,
    ),
    Accept(lease=LEASE),
    Busy(lease=LEASE, detail="all 4 slots are busy"),
    First(lease=LEASE),
    Done(
        lease=LEASE,
        finish_reason="stop",
        usage=Usage(input_tokens=31, cached_input_tokens=0, output_tokens=9),
        stream_bytes=2100,
        response_digest="0" * 64,
        release_fingerprint="0" * 64,
        statement="{}",
        statement_signature="0" * 128,
    ),
    Cancelled(lease=LEASE, stream_bytes=700),
    Fail(lease=LEASE, kind="engine-lost", retryable=True),
    Heartbeat(seq=0),
)
FROM_GATEWAY: tuple[GatewayMessage, ...] = (
    Challenge(nonce="0" * 64),
    Welcome(epoch=7, heartbeat_seconds=5.0, dead_seconds=25.0),
    Refused(code="unknown-agent", detail="register first"),
    run_message(LEASE),
    Cancel(lease=LEASE),
    Settled(lease=LEASE),
    Heartbeat(seq=0),
    Reason(text="no demand"),
)
