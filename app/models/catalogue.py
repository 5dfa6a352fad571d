"""The approved releases, read from package data and checked against their own digests."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import DecodeError, json

from app.models.errors import MessagesError, ReleaseBroken, UnknownModel
from app.models.messages import check_messages
from app.models.release import ModelRelease
from ledger.encoding import canonical_json
from ledger.errors import NotCanonical

RELEASES = Path(__file__).parent / "releases"
DOCUMENT = "release.json"


def load_release(folder: Path) -> ModelRelease:
    """Return the release described in a folder, every file in it compared with its digest.

    Raises:
        ReleaseBroken: the document is not one, or a file is missing or not the pinned one.
    """
    try:
        document = (folder / DOCUMENT).read_bytes()
        release = json.decode(document, type=ModelRelease)
        whole = sha256(canonical_json(json.decode(document))).hexdigest()
        check_messages(release.canary.messages, release.special_tokens)
    except (OSError, DecodeError, NotCanonical, MessagesError) as error:
        raise ReleaseBroken(release=folder.name, reason=str(error)) from error
    if release.fingerprint != whole:
        raise ReleaseBroken(release=folder.name, reason="the document says more than is read")
    if release.id != folder.name:
        raise ReleaseBroken(release=folder.name, reason=f"the document says {release.id}")
    for file in release.files:
        if file != release.weights:
            _check(folder / file.name, file.sha256, release=release.id)
    return release


class Catalogue:
    """The releases that quotes may name."""

    def __init__(self, folder: Path = RELEASES) -> None:
        """Read every release in the folder; a broken one raises ReleaseBroken."""
        self._folder = folder
        self._releases = {
            document.parent.name: load_release(document.parent)
            for document in sorted(folder.glob(f"*/{DOCUMENT}"))
        }

    def __iter__(self) -> Iterator[ModelRelease]:
        """Iterate over the releases in order of their ids."""
        return iter(self._releases.values())

    def get(self, model: str) -> ModelRelease:
        """Return the release with this id.

        Raises:
            UnknownModel: none has it.
        """
        release = self._releases.get(model)
        if release is None:
            raise UnknownModel(model)
        return release

    def folder_of(self, release: ModelRelease) -> Path:
        """Return where the release's document and small files lie."""
        return self._folder / release.id


def _check(path: Path, expected: str, *, release: str) -> None:
    try:
        found = sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ReleaseBroken(release=release, reason=f"{path.name} is missing") from error
    if found != expected:
        raise ReleaseBroken(release=release, reason=f"{path.name} has sha256 {found}")
