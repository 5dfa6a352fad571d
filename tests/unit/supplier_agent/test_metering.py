"""What the agent signs is what the gateway can check."""

from uuid import UUID

import pytest

from ledger.errors import BadSignature
from ledger.statement import SupplierStatement
from supplier_agent.identity import DeviceKey
from supplier_agent.metering import Meter
from supplier_agent.protocol import Answer, Usage
from tests.unit.supplier_agent.samples import JOB, LEASE, run_message

KEY = DeviceKey(b"k" * 32)
ANSWER = Answer(
    content="Hello",
    finish_reason="stop",
    usage=Usage(input_tokens=31, cached_input_tokens=2, output_tokens=3),
)


def test_the_statement_binds_lease_job_digests_usage_and_release() -> None:
    run = run_message(LEASE)
    done = Meter(KEY, "ab" * 32).done(run, ANSWER, stream_bytes=900)
    expected = SupplierStatement(
        lease=UUID(LEASE.removeprefix("lease_")),
        job=UUID(JOB.removeprefix("job_")),
        request_digest=bytes.fromhex(run.request_digest),
        response_digest=ANSWER.digest,
        input_tokens=31,
        cached_input_tokens=2,
        output_tokens=3,
        finish="stop",
        release_fingerprint="ab" * 32,
    )

    assert done.statement.encode() == expected.canonical()
    assert done.response_digest == ANSWER.digest.hex()
    expected.verify(bytes.fromhex(done.statement_signature), public_key=KEY.public)
    with pytest.raises(BadSignature):
        expected.verify(
            bytes.fromhex(done.statement_signature), public_key=DeviceKey(b"o" * 32).public
        )
