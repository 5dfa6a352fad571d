"""What one wallet authorization costs to check: parse, digest, recover, in microseconds.

Run from the repository's root: `python tests/bench/authorization_cost.py`.
"""

import hashlib
import timeit
from collections.abc import Callable

from ledger.authorization import NO_DELEGATION, RequestAuthorization, authorization_domain
from ledger.encoding import Address
from ledger.money import Nano
from ledger.signing import SigningKey, recover, sign_digest

SECRET = hashlib.sha256(b"offpeak TEST key, never fund").digest()


def microseconds(call: Callable[[], object], *, number: int = 2000, repeat: int = 7) -> float:
    """The fastest of `repeat` means over `number` calls."""
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e6


def main() -> None:
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

    def check() -> bool:
        return recover(authorization.digest(domain), signature) == key.address

    assert check()
    rows: list[tuple[str, Callable[[], object]]] = [
        ("parse", lambda: RequestAuthorization.parse(message)),
        ("digest", lambda: authorization.digest(domain)),
        ("recover", lambda: recover(digest, signature)),
        ("digest + recover", check),
        ("sign, key ready", lambda: key.sign(digest)),
        ("sign, key from bytes", lambda: sign_digest(SECRET, digest)),
    ]
    for name, call in rows:
        print(f"{name:22}{microseconds(call):8.1f} us")


if __name__ == "__main__":
    main()
