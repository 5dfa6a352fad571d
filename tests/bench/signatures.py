"""What one wallet authorization costs to check: parse, digest, recover."""

import hashlib
from collections.abc import Callable, Sequence

from ledger.authorization import NO_DELEGATION, RequestAuthorization, authorization_domain
from ledger.encoding import Address
from ledger.money import Nano
from ledger.signing import SigningKey, recover
from tests.bench.measure import MICRO, Effort, Measurement, Row, cpu_per_call

SECRET = hashlib.sha256(b"offpeak TEST key, never fund").digest()


def measure(effort: Effort) -> Sequence[Row]:
    """Return the parts' CPU."""
    key = SigningKey(SECRET)
    domain = authorization_domain(chain_id=31337, treasury=Address("0x" + "5f" * 20))
    authorization = RequestAuthorization(
        payer=key.address,
        delegation=NO_DELEGATION,
        quote_digest=bytes(range(32)),
        request_digest=bytes(range(32, 64)),
        model="smollm2-135m-instruct",
        max_output_tokens=256,
        token=Address("0x" + "a0" * 20),
        max_charge_nano=Nano(14_250),
        valid_after=1_790_000_000,
        deadline=1_790_000_060,
        nonce=bytes(range(64, 96)),
    )
    message = authorization.message()
    digest = authorization.digest(domain)
    signature = key.sign(digest)
    parts: dict[str, Callable[[], object]] = {
        "parse": lambda: RequestAuthorization.parse(message),
        "digest": lambda: authorization.digest(domain),
        "recover": lambda: recover(digest, signature),
        "sign": lambda: key.sign(digest),
    }
    calls = effort.of(2_000, quick=200)
    return [
        Row(
            name=f"authorization {name}",
            measured=cpu_per_call(call, calls=calls) * MICRO,
            unit="us",
        )
        for name, call in parts.items()
    ]


MEASUREMENTS = (Measurement("authorization", measure),)
