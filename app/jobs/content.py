"""What is stored of a job's texts: the sealed request with its salt, and the sealed answer."""

from dataclasses import dataclass
from uuid import UUID

import msgspec

from app.kit.cipher import ContentCipher
from app.kit.errors import ContentUnreadable
from ledger.encoding import canonical_json

SALT_BYTES = 32


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """The buyer's salt (32 bytes) and the RFC 8785 form of the request, which its digest covers."""

    salt: bytes
    canonical: bytes


class StoredAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole answer as its buyer may read it."""

    content: str
    finish_reason: str


def seal_request(cipher: ContentCipher, job_id: UUID, request: StoredRequest) -> bytes:
    """Return what the column `job.request` holds: salt, then request, sealed for this job."""
    assert len(request.salt) == SALT_BYTES
    return cipher.seal(request.salt + request.canonical, job_id=job_id, part="request")


def open_request(cipher: ContentCipher, job_id: UUID, sealed: bytes) -> StoredRequest:
    """Return what `seal_request` sealed.

    Raises:
        ContentUnreadable, UnknownContentKey: see `ContentCipher.open`.
    """
    plain = cipher.open(sealed, job_id=job_id, part="request")
    return StoredRequest(salt=plain[:SALT_BYTES], canonical=plain[SALT_BYTES:])


def seal_answer(cipher: ContentCipher, job_id: UUID, answer: StoredAnswer) -> bytes:
    """Return what the column `job.result` holds: canonical JSON, sealed for this job."""
    plain = canonical_json({"content": answer.content, "finish_reason": answer.finish_reason})
    return cipher.seal(plain, job_id=job_id, part="answer")


def open_answer(cipher: ContentCipher, job_id: UUID, sealed: bytes) -> StoredAnswer:
    """Return what `seal_answer` sealed.

    Raises:
        ContentUnreadable, UnknownContentKey: see `ContentCipher.open`.
    """
    plain = cipher.open(sealed, job_id=job_id, part="answer")
    try:
        return msgspec.json.decode(plain, type=StoredAnswer)
    except msgspec.DecodeError:
        raise ContentUnreadable from None
