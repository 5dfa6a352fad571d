"""Writes `eip712.json`, byte for byte the same on every run.

Run from the repository's root: `python -m tests.vectors.make_eip712`. The signatures are by
a TEST key made from the text in `signer_seed`; nobody may ever fund it.
"""

import json
from pathlib import Path

from ledger.encoding import checksum_address, domain_separator
from ledger.hashing import keccak256
from ledger.signing import SigningKey
from tests.vectors.eip712_messages import PLAIN, Case, cases

PATH = Path(__file__).with_name("eip712.json")
SIGNER_SEED = "OFFPEAK TEST key for vectors, public, never fund it"
NOTE = (
    "EIP-712 vectors of OFFPEAK. The private key is keccak256 of the UTF-8 bytes of signer_seed:"
    " a TEST key. A signature is r || s || v, RFC 6979, low s, v 27 or 28."
)


def vector_key() -> bytes:
    """The 32 bytes of the TEST key."""
    return keccak256(SIGNER_SEED.encode())


def _vector(case: Case, key: SigningKey) -> dict[str, object]:
    digest = case.message.digest(case.domain)
    return {
        "type": case.message.TYPE.name,
        "name": case.name,
        "domain": case.domain.message(),
        "message": case.message.message(),
        "domain_separator": "0x" + domain_separator(case.domain).hex(),
        "struct_hash": "0x" + case.message.struct_hash().hex(),
        "digest": "0x" + digest.hex(),
        "signature": "0x" + key.sign(digest).hex(),
    }


def render() -> str:
    """The whole file's text."""
    key = SigningKey(vector_key())
    kinds = [case.message.TYPE for case in PLAIN]
    vectors = {
        "note": NOTE,
        "signer_seed": SIGNER_SEED,
        "signer": checksum_address(key.address),
        "types": {
            kind.name: {
                "encoded": kind.type_string,
                "type_hash": "0x" + kind.type_hash.hex(),
                "fields": kind.declaration(),
            }
            for kind in kinds
        },
        "vectors": [_vector(case, key) for case in cases()],
    }
    return json.dumps(vectors, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file."""
    PATH.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
