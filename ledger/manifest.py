"""The manifest of a finance export: what was exported, signed by the log's key and logged.

The entry in the log is a signed note; its text is the tag, the log's origin and the manifest in
RFC 8785 form. Nothing in it depends on when or where the export ran, so a rerun makes the same.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from ledger.encoding import canonical_json
from ledger.errors import BadEntry
from ledger.log_entry import (
    MAX_ASSETS,
    AssetSums,
    read_signed_text,
    require_order,
    signed_text,
)
from ledger.note import Note, NoteSigner, sign_note
from ledger.strict_json import (
    bytes_of,
    integer_of,
    list_of,
    object_of,
    require_members,
    text_of,
)

MANIFEST_LINE: Final = "offpeak/export-manifest@v1"
MANIFEST_VERSION: Final = 1
MAX_FILES: Final = 64
_FORMAT = re.compile(r"[a-z0-9][a-z0-9.-]{0,31}")
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_MEMBERS: Final = (
    "version", "format", "from", "to", "filters", "first_batch", "last_batch", "log_size",
    "records", "transfers", "sums", "files",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file of the export: its name in the folder, its length, its SHA-256."""

    name: str
    size: int
    digest: bytes

    def message(self) -> dict[str, object]:
        """As it travels."""
        return {"name": self.name, "bytes": str(self.size), "sha256": "0x" + self.digest.hex()}

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form, or a name that could lead elsewhere."""
        given = object_of(value, field)
        require_members(given, "name", "bytes", "sha256", what=field)
        name = text_of(given["name"], f"{field}.name")
        if _FILE_NAME.fullmatch(name) is None:
            raise BadEntry(f"{field}.name", "not a plain file name")
        size = integer_of(given["bytes"], f"{field}.bytes")
        return cls(name, size, bytes_of(given["sha256"], f"{field}.sha256"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportManifest:
    """One export over the half-open interval `from_at` .. `to_at`, unix seconds UTC.

    `first_batch` and `last_batch` are the batches that hold its records, None for no record;
    `log_size` is the log's size just after the last of them (0 for none), at which its evidence
    is proved. `filters` are name and value of what was left out, by name.
    """

    origin: str
    format: str
    from_at: int
    to_at: int
    filters: tuple[tuple[str, str], ...]
    first_batch: int | None
    last_batch: int | None
    log_size: int
    records: int
    transfers: int
    sums: tuple[AssetSums, ...]
    files: tuple[ExportFile, ...]

    def encode(self) -> bytes:
        """The manifest's bytes: RFC 8785 JSON, without a line feed."""
        return canonical_json(
            {
                "version": str(MANIFEST_VERSION),
                "format": self.format,
                "from": str(self.from_at),
                "to": str(self.to_at),
                "filters": dict(self.filters),
                "first_batch": None if self.first_batch is None else str(self.first_batch),
                "last_batch": None if self.last_batch is None else str(self.last_batch),
                "log_size": str(self.log_size),
                "records": str(self.records),
                "transfers": str(self.transfers),
                "sums": [each.message() for each in self.sums],
                "files": [each.message() for each in self.files],
            }
        )

    def text(self) -> str:
        """The three lines that are signed."""
        return signed_text(MANIFEST_LINE, self.origin, self.encode())

    def sign(self, signers: Iterable[NoteSigner]) -> bytes:
        """The log entry: the manifest as a signed note."""
        return sign_note(self.text(), signers)

    @classmethod
    def read(cls, note: Note) -> Self:
        """What a note claims; believe it once a trusted key has signed it.

        Raises:
            BadEntry: another form, or figures that cannot go together.
            BadNote: the origin cannot be one.
        """
        origin, given = read_signed_text(note, MANIFEST_LINE, what="manifest")
        require_members(given, *_MEMBERS, what="manifest")

        def number(name: str) -> int:
            return integer_of(given[name], f"manifest.{name}")

        def batch(name: str) -> int | None:
            return None if given[name] is None else number(name)

        if number("version") != MANIFEST_VERSION:
            raise BadEntry("manifest.version", "not 1")
        sums = list_of(given["sums"], "manifest.sums", limit=MAX_ASSETS)
        files = list_of(given["files"], "manifest.files", limit=MAX_FILES)
        filters = object_of(given["filters"], "manifest.filters")
        manifest = cls(
            origin=origin,
            format=text_of(given["format"], "manifest.format"),
            from_at=number("from"),
            to_at=number("to"),
            filters=tuple(
                (name, text_of(filters[name], f"manifest.filters.{name}"))
                for name in sorted(filters)
            ),
            first_batch=batch("first_batch"),
            last_batch=batch("last_batch"),
            log_size=number("log_size"),
            records=number("records"),
            transfers=number("transfers"),
            sums=tuple(AssetSums.parse(each, f"manifest.sums[{n}]") for n, each in enumerate(sums)),
            files=tuple(
                ExportFile.parse(each, f"manifest.files[{n}]") for n, each in enumerate(files)
            ),
        )
        require_order(manifest.sums, "manifest.sums")
        if len({each.name for each in manifest.files}) != len(manifest.files):
            raise BadEntry("manifest.files", "one name twice")
        _require_sense(manifest)
        return manifest


def _require_sense(manifest: ExportManifest) -> None:
    if _FORMAT.fullmatch(manifest.format) is None:
        raise BadEntry("manifest.format", "not a plain name")
    if manifest.from_at >= manifest.to_at:
        raise BadEntry("manifest.to", "not after from")
    first, last = manifest.first_batch, manifest.last_batch
    if (first is None) != (last is None) or (first or 0) > (last or 0):
        raise BadEntry("manifest.last_batch", "not both batches in order, or neither")
    if (first is None) != (manifest.log_size == 0):
        raise BadEntry("manifest.log_size", "0 is the size when there is no batch, and only then")
    if (first is None) != (manifest.records == 0):
        raise BadEntry("manifest.records", "0 when there is no batch, and only then")
