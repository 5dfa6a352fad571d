"""The model release this deployment serves: what its files must be and what it must answer."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from ledger.encoding import canonical_json
from ledger.errors import LedgerError
from supplier_agent.engine.sampling import SamplingDefaults
from supplier_agent.errors import AgentError
from supplier_agent.protocol import Message

_CHUNK_BYTES = 1 << 20
_MAX_DOCUMENT_BYTES = 1 << 20


class BadRelease(AgentError):
    """The release document cannot be read or does not say what is needed."""

    code = "bad-release"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class WrongWeights(AgentError):
    """A file is not the one the release names. Serving it would sell another model."""

    code = "wrong-weights"

    def __init__(self, path: Path, *, expected: str, found: str) -> None:
        super().__init__(f"{path}: expected {expected}, found {found}")
        self.path = path
        self.expected = expected
        self.found = found


class ReleaseFile(msgspec.Struct, frozen=True):
    """One pinned file; `size` in bytes, `sha256` in hex."""

    name: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    size: Annotated[int, Meta(ge=0)]


class Canary(msgspec.Struct, frozen=True):
    """A prompt and the answer that the right weights give at temperature 0."""

    messages: Annotated[tuple[Message, ...], Meta(min_length=1)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=1024)]
    answer: str


class _Document(msgspec.Struct, frozen=True):
    id: str
    revision: str
    files: Annotated[tuple[ReleaseFile, ...], Meta(min_length=1)]
    context_tokens: Annotated[int, Meta(ge=1)]
    canary: Canary
    sampling: SamplingDefaults = SamplingDefaults()


@dataclass(frozen=True, slots=True)
class Release:
    """A release, as its document tells it.

    `fingerprint` is the SHA-256 (hex) of the RFC 8785 form of the whole document: the gateway
    and the agent compute it from the same text and compare.
    """

    id: str
    revision: str
    files: tuple[ReleaseFile, ...]
    context_tokens: int
    canary: Canary
    sampling: SamplingDefaults
    fingerprint: str
    folder: Path

    def paths(self, weights: Path) -> dict[ReleaseFile, Path]:
        """Where each file lies: the GGUF at `weights`, the rest beside the document."""
        return {
            file: weights if file.name.endswith(".gguf") else self.folder / file.name
            for file in self.files
        }


def load_release(path: Path) -> Release:
    """Return the release of the JSON document at `path`.

    Raises:
        BadRelease: no such document.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise BadRelease(path, error.strerror or "cannot be read") from error
    if len(raw) > _MAX_DOCUMENT_BYTES:
        raise BadRelease(path, f"over {_MAX_DOCUMENT_BYTES} bytes")
    try:
        document = msgspec.json.decode(raw, type=_Document)
        canonical = canonical_json(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, LedgerError) as error:
        raise BadRelease(path, str(error)) from error
    return Release(
        id=document.id,
        revision=document.revision,
        files=document.files,
        context_tokens=document.context_tokens,
        canary=document.canary,
        sampling=document.sampling,
        fingerprint=hashlib.sha256(canonical).hexdigest(),
        folder=path.parent,
    )


def verify_files(release: Release, weights: Path) -> None:
    """Compare every file with the release, size first.

    Raises:
        WrongWeights: one is missing, or has another size or digest.
    """
    for file, path in release.paths(weights).items():
        if not path.is_file():
            beside = "" if path == weights else "; release.json must stay in its folder"
            raise WrongWeights(path, expected=file.name, found=f"no file{beside}")
        size = path.stat().st_size
        if size != file.size:
            raise WrongWeights(path, expected=f"{file.size} bytes", found=f"{size} bytes")
        digest = _digest(path)
        if digest != file.sha256:
            raise WrongWeights(path, expected=f"sha256 {file.sha256}", found=digest)


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            total.update(chunk)
    return total.hexdigest()
