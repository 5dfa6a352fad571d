"""The agent's signed word about one attempt, and the DONE that carries it."""

from dataclasses import dataclass
from uuid import UUID

from ledger.statement import SupplierStatement
from supplier_agent.identity import DeviceKey
from supplier_agent.protocol import Answer, Done, Run


@dataclass(frozen=True, slots=True)
class Meter:
    """Signs for one device key and one release (fingerprint in hex)."""

    key: DeviceKey
    release_fingerprint: str

    def done(self, run: Run, answer: Answer, *, stream_bytes: int) -> Done:
        """Return the DONE of a successful attempt: usage as the engine counted it, signed."""
        statement = SupplierStatement(
            lease=UUID(run.lease.removeprefix("lease_")),
            job=UUID(run.job.removeprefix("job_")),
            request_digest=bytes.fromhex(run.request_digest),
            response_digest=answer.digest,
            input_tokens=answer.usage.input_tokens,
            cached_input_tokens=answer.usage.cached_input_tokens,
            output_tokens=answer.usage.output_tokens,
            finish=answer.finish_reason,
            release_fingerprint=self.release_fingerprint,
        )
        return Done(
            lease=run.lease,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            stream_bytes=stream_bytes,
            response_digest=answer.digest.hex(),
            release_fingerprint=self.release_fingerprint,
            statement=statement.canonical().decode(),
            statement_signature=statement.sign(self.key.seed).hex(),
        )
