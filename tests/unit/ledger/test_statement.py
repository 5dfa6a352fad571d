import hashlib
import json
from dataclasses import replace
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.errors import BadLength, BadPrivateKey, BadSignature, NotCanonical
from ledger.statement import SupplierStatement

SEED = hashlib.sha256(b"offpeak TEST agent key").digest()
PUBLIC = Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw()
STATEMENT = SupplierStatement(
    lease=UUID("01990000-0000-7000-8000-00000000c001"),
    job=UUID("01990000-0000-7000-8000-00000000b001"),
    request_digest=bytes(32),
    response_digest=bytes(range(32)),
    input_tokens=48,
    cached_input_tokens=16,
    output_tokens=2**53 + 1,
    finish="stop",
    release_fingerprint="smollm2-135m-instruct@b179c952",
)

ALTERED = [
    replace(STATEMENT, lease=UUID(int=1)),
    replace(STATEMENT, job=UUID(int=1)),
    replace(STATEMENT, request_digest=b"\1" * 32),
    replace(STATEMENT, response_digest=b"\1" * 32),
    replace(STATEMENT, input_tokens=49),
    replace(STATEMENT, cached_input_tokens=0),
    replace(STATEMENT, output_tokens=2**53),
    replace(STATEMENT, finish="length"),
    replace(STATEMENT, release_fingerprint="other"),
]


def test_a_statement_is_canonical_json_with_integers_as_strings() -> None:
    body = json.loads(STATEMENT.canonical())
    assert body["output_tokens"] == "9007199254740993"
    assert body["request_digest"] == "0x" + "00" * 32
    assert list(body) == sorted(body)


def test_the_digest_is_sha256_of_tag_and_canonical_form() -> None:
    tagged = b"offpeak/supplier-statement@v1\n" + STATEMENT.canonical()
    assert STATEMENT.digest() == hashlib.sha256(tagged).digest()


def test_the_agents_signature_is_deterministic_and_verifies() -> None:
    signature = STATEMENT.sign(SEED)
    assert signature == STATEMENT.sign(SEED)
    STATEMENT.verify(signature, public_key=PUBLIC)


@pytest.mark.parametrize("other", ALTERED)
def test_a_signature_covers_every_field(other: SupplierStatement) -> None:
    assert other.digest() != STATEMENT.digest()
    with pytest.raises(BadSignature):
        other.verify(STATEMENT.sign(SEED), public_key=PUBLIC)


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65)])
def test_what_is_no_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(BadSignature):
        STATEMENT.verify(signature, public_key=PUBLIC)


@pytest.mark.parametrize("public_key", [b"", bytes(31), bytes(32), b"\xff" * 32])
def test_another_key_or_none_is_refused(public_key: bytes) -> None:
    with pytest.raises(BadSignature):
        STATEMENT.verify(STATEMENT.sign(SEED), public_key=public_key)


def test_a_seed_is_32_bytes() -> None:
    with pytest.raises(BadPrivateKey):
        STATEMENT.sign(bytes(31))


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(NotCanonical):
        replace(STATEMENT, release_fingerprint="\ud800").digest()


@pytest.mark.parametrize("field", ["request_digest", "response_digest"])
def test_digests_are_32_bytes(field: str) -> None:
    short = bytes(31)
    wrong = (
        replace(STATEMENT, request_digest=short)
        if field == "request_digest"
        else replace(STATEMENT, response_digest=short)
    )
    with pytest.raises(BadLength):
        wrong.canonical()
