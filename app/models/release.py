"""What a model release is: an approved model with everything that decides its answers pinned."""

from functools import cached_property
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct, to_builtins

from app.models.errors import ContextExceeded, ReleaseBroken
from app.models.messages import Message
from ledger.encoding import canonical_json

WEIGHTS_SUFFIX = ".gguf"

Text = Annotated[str, Meta(min_length=1, max_length=200)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class ReleaseFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One pinned file; `size` in bytes, `sha256` in hex."""

    name: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    size: Annotated[int, Meta(gt=0)]


class WeightsSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The Python package that carries the weights and the member of it that holds them."""

    package: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]*\Z")]
    version: Annotated[str, Meta(pattern=r"\A[0-9][0-9A-Za-z.]*\Z")]
    member: Text
    download_size: Annotated[int, Meta(gt=0)]


class SamplingDefaults(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of a request that names none; always sent, as engines' own defaults differ."""

    temperature: Annotated[float, Meta(ge=0, le=2)]
    top_p: Annotated[float, Meta(gt=0, le=1)]
    presence_penalty: Penalty
    frequency_penalty: Penalty


class Canary(Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt and the exact answer that these weights give at temperature 0."""

    messages: Annotated[tuple[Message, ...], Meta(min_length=1)]
    max_output_tokens: Annotated[int, Meta(ge=1, le=1024)]
    answer: Text


class ModelRelease(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """An approved model: every field is part of its document and so of its fingerprint.

    The revision is a bytes32 in hex, the SHA-256 of the weights. The context is a slot's,
    in tokens, not the most the model could take. A release knows no region: deployments do.
    """

    id: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9.-]{0,63}\Z")]
    name: Text
    author: Text
    licence: Text
    revision: Annotated[str, Meta(pattern=r"\A0x[0-9a-f]{64}\Z")]
    context_tokens: Annotated[int, Meta(ge=2, lt=2**32)]
    files: Annotated[tuple[ReleaseFile, ...], Meta(min_length=1, max_length=64)]
    source: WeightsSource
    special_tokens: tuple[Text, ...]
    sampling: SamplingDefaults
    canary: Canary

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 in hex of the RFC 8785 form of the whole document; the agent signs it."""
        return sha256(canonical_json(to_builtins(self))).hexdigest()

    @cached_property
    def weights(self) -> ReleaseFile:
        """The one file that is not part of the package data.

        Raises:
            ReleaseBroken: there is not exactly one, or the revision is not its digest.
        """
        found = [file for file in self.files if file.name.endswith(WEIGHTS_SUFFIX)]
        if len(found) != 1:
            raise ReleaseBroken(release=self.id, reason=f"{len(found)} weights files, not one")
        if self.revision != f"0x{found[0].sha256}":
            raise ReleaseBroken(release=self.id, reason="the revision is not the weights' digest")
        return found[0]

    def ensure_fits(self, *, input_tokens: int, max_output_tokens: int) -> None:
        """Raise ContextExceeded unless prompt and output ceiling fit the context together."""
        if input_tokens + max_output_tokens > self.context_tokens:
            raise ContextExceeded(
                input_tokens=input_tokens,
                max_output_tokens=max_output_tokens,
                context_tokens=self.context_tokens,
            )
