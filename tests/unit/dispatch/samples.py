"""Work, answers and DONEs for pure tests."""

from typing import Any
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.dispatch.work import AcceptedWork, ServedRelease, SlotSpeeds, Work
from ledger.commitment import request_digest
from ledger.money import Nano
from ledger.statement import SupplierStatement
from pricing.charge import max_charge
from pricing.rates import Rates
from supplier_agent.identity import DeviceKey
from supplier_agent.protocol import Answer, Done, Usage

KEY = DeviceKey(b"k" * 32)
PUBLIC = Ed25519PublicKey.from_public_bytes(KEY.public)
RATES = Rates(Nano(2_000_000_000), Nano(9_000_000_000), Nano(1_000))
RELEASE = ServedRelease("model", "ab" * 32, lambda text: len(text.split()), SlotSpeeds(300, 20))
SALT = b"s" * 32
REQUEST = b'{"max_output_tokens":64}'


def work(
    *,
    input_tokens: int = 12,
    max_output: int = 64,
    deadline: float = 160.0,
    claimed: SlotSpeeds | None = None,
) -> Work:
    """A lease on a slot of 300 and 20 tokens per second, or the claimed speeds."""
    accepted = AcceptedWork(
        lease_id=UUID(int=1),
        job_id=UUID(int=2),
        agent_id=UUID(int=3),
        deployment_id=UUID(int=4),
        release=RELEASE.id,
        input_tokens=input_tokens,
        max_output_tokens=max_output,
        rates=RATES,
        max_charge=max_charge(RATES, input_tokens, max_output),
        request_digest=request_digest(SALT, REQUEST),
        salt=SALT,
        request=REQUEST,
        remaining_seconds=60,
    )
    return Work(
        accepted=accepted,
        deployment="gpu0",
        speeds=claimed or SlotSpeeds(300, 20),
        deadline=deadline,
    )


def answer(*, words: int = 10, output_tokens: int | None = None, finish: Any = "stop") -> Answer:
    reported = words + (finish == "stop") if output_tokens is None else output_tokens
    usage = Usage(input_tokens=12, cached_input_tokens=4, output_tokens=reported)
    return Answer(" ".join(["word"] * words), finish, usage)


def done(given: Answer, of: Work, **lies: Any) -> Done:
    """A signed DONE; lies among its fields are signed like the truth unless they are signatures."""
    truth = Done(
        lease=f"lease_{of.accepted.lease_id}",
        finish_reason=given.finish_reason,
        usage=given.usage,
        stream_bytes=0,
        response_digest=given.digest.hex(),
        release_fingerprint=RELEASE.fingerprint,
        statement="",
        statement_signature="00" * 64,
    )
    told = msgspec.structs.replace(truth, **lies)
    statement = SupplierStatement(
        lease=of.accepted.lease_id,
        job=of.accepted.job_id,
        request_digest=of.accepted.request_digest,
        response_digest=bytes.fromhex(told.response_digest),
        input_tokens=told.usage.input_tokens,
        cached_input_tokens=told.usage.cached_input_tokens,
        output_tokens=told.usage.output_tokens,
        finish=told.finish_reason,
        release_fingerprint=told.release_fingerprint,
    )
    signed = {
        "statement": statement.canonical().decode(),
        "statement_signature": statement.sign(KEY.seed).hex(),
    }
    return msgspec.structs.replace(told, **{**signed, **lies})
