"""Salted commitments to what was asked and answered.

SHA-256 over a tag line, a 32-byte salt and the bytes. The salt keeps a short prompt from being
guessed from its digest; the tag keeps one kind of commitment from passing as another.
"""

from typing import Final

from ledger.hashing import require_32_bytes, sha256

REQUEST_TAG: Final = b"offpeak/request@v1\n"
ANSWER_TAG: Final = b"offpeak/answer@v1\n"
REQUEST_COMMIT_TAG: Final = b"offpeak/request-commit@v1\n"
RESPONSE_COMMIT_TAG: Final = b"offpeak/response-commit@v1\n"


def request_digest(salt: bytes, canonical: bytes) -> bytes:
    """What quote and authorization call `requestDigest`, 32 bytes.

    `salt` is chosen by the buyer; `canonical` is the RFC 8785 form of the validated request.

    Raises:
        BadLength: the salt is not 32 bytes.
    """
    return sha256(REQUEST_TAG + require_32_bytes("salt", salt) + canonical)


def request_commit(salt: bytes, digest: bytes) -> bytes:
    """The usage record's `requestCommit`: to a request digest, under the record's salt.

    Raises:
        BadLength: salt or digest is not 32 bytes.
    """
    salted = REQUEST_COMMIT_TAG + require_32_bytes("salt", salt)
    return sha256(salted + require_32_bytes("request digest", digest))


def answer_digest(content: str, finish_reason: str) -> bytes:
    """What the supplier's statement calls `response_digest`, 32 bytes.

    SHA-256 over the tag, the finish reason, a line feed and the content in UTF-8.
    """
    return sha256(ANSWER_TAG + finish_reason.encode() + b"\n" + content.encode())


def response_commit(salt: bytes, digest: bytes) -> bytes:
    """The usage record's `responseCommit`: to an answer's digest, under the record's salt.

    To the digest and not to the text, because records are signed after a crash too, when the
    text may be gone. A job without an answer commits to 32 zero bytes.

    Raises:
        BadLength: salt or digest is not 32 bytes.
    """
    salted = RESPONSE_COMMIT_TAG + require_32_bytes("salt", salt)
    return sha256(salted + require_32_bytes("answer digest", digest))
