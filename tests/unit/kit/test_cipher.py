from uuid import UUID

import pytest

from app.kit.cipher import ContentCipher
from app.kit.errors import ContentUnreadable, UnknownContentKey

JOB = UUID(int=1)
OLD, NEW = bytes(range(32)), bytes(range(1, 33))


def test_content_opens_for_its_own_job_and_part_only() -> None:
    cipher = ContentCipher([NEW])
    sealed = cipher.seal(b"the prompt", job_id=JOB, part="request")
    assert b"the prompt" not in sealed
    assert cipher.open(sealed, job_id=JOB, part="request") == b"the prompt"
    with pytest.raises(ContentUnreadable):
        cipher.open(sealed, job_id=UUID(int=2), part="request")
    with pytest.raises(ContentUnreadable):
        cipher.open(sealed, job_id=JOB, part="answer")


def test_one_changed_byte_is_noticed() -> None:
    cipher = ContentCipher([NEW])
    sealed = bytearray(cipher.seal(b"x", job_id=JOB, part="answer"))
    sealed[-1] ^= 1
    with pytest.raises(ContentUnreadable):
        cipher.open(bytes(sealed), job_id=JOB, part="answer")
    with pytest.raises(ContentUnreadable):
        cipher.open(b"\x01short", job_id=JOB, part="answer")


def test_a_replaced_key_still_opens_what_it_sealed() -> None:
    sealed = ContentCipher([OLD]).seal(b"old", job_id=JOB, part="answer")
    assert ContentCipher([NEW, OLD]).open(sealed, job_id=JOB, part="answer") == b"old"
    with pytest.raises(UnknownContentKey):
        ContentCipher([NEW]).open(sealed, job_id=JOB, part="answer")
