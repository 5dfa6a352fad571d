import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.commitment import answer_digest, request_commit, request_digest, response_commit
from ledger.errors import BadLength

SALT = bytes(range(32))
salts = st.binary(min_size=32, max_size=32)


@given(salts, st.binary())
def test_a_request_digest_is_sha256_of_tag_salt_and_bytes(salt: bytes, canonical: bytes) -> None:
    expected = hashlib.sha256(b"offpeak/request@v1\n" + salt + canonical).digest()
    assert request_digest(salt, canonical) == expected


def test_each_kind_of_commitment_has_a_tag_of_its_own() -> None:
    body = bytes(32)
    made = {request_digest(SALT, body), request_commit(SALT, body), response_commit(SALT, body)}
    assert len(made) == 3


@given(salts, salts)
def test_the_salt_hides_what_was_asked(one: bytes, other: bytes) -> None:
    same = request_digest(one, b"yes") == request_digest(other, b"yes")
    assert same == (one == other)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_salt_is_32_bytes(length: int) -> None:
    salt = bytes(length)
    with pytest.raises(BadLength, match="salt"):
        request_digest(salt, b"")
    with pytest.raises(BadLength, match="salt"):
        request_commit(salt, bytes(32))
    with pytest.raises(BadLength, match="salt"):
        response_commit(salt, bytes(32))


def test_a_request_commit_covers_a_digest_of_32_bytes() -> None:
    with pytest.raises(BadLength, match="request digest"):
        request_commit(SALT, bytes(31))


def test_a_response_commit_covers_a_digest_of_32_bytes() -> None:
    with pytest.raises(BadLength, match="answer digest"):
        response_commit(SALT, b"an answer")


def test_an_answers_digest_covers_why_it_ended() -> None:
    expected = hashlib.sha256(b"offpeak/answer@v1\nstop\nHello").digest()
    assert answer_digest("Hello", "stop") == expected
    assert answer_digest("Hello", "length") != expected
