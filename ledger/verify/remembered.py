"""The checkpoint that `--prev` remembers between runs: only ever replaced by a later one."""

from typing import Final

from ledger.checkpoint import Checkpoint
from ledger.errors import BadNote
from ledger.merkle import TreeHead
from ledger.note import MAX_NOTE_BYTES, Note
from ledger.verify.errors import Unusable
from ledger.verify.files import exists, followed, locked_folder_of, read_limited, replace_file

HINT: Final = "remove it only if you know why"


def load(path: str, origin: str) -> TreeHead | None:
    """The head that a file remembers; None when there is no file.

    It was verified before it was written, so its signatures are kept, as evidence, but not checked.

    Raises:
        Unusable: it cannot be read, is no checkpoint, or is one of another log.
    """
    if not exists(path):
        return None
    try:
        checkpoint = Checkpoint.read(Note.parse(read_limited(path, MAX_NOTE_BYTES)))
    except BadNote as error:
        raise Unusable(f"{path}: not a checkpoint: {error.reason}; {HINT}") from None
    if checkpoint.origin != origin:
        raise Unusable(f"{path}: remembers {checkpoint.origin}, not {origin}")
    return checkpoint.head


def store(path: str, origin: str, *, was: TreeHead | None, now: TreeHead, note: bytes) -> None:
    """Remember a checkpoint, unless one as large is there.

    Raises:
        Unusable: it cannot be written, or another run has changed it since it was loaded.
    """
    if was is not None and was.size >= now.size:
        return
    path = followed(path)  # a link goes on naming what is remembered
    with locked_folder_of(path):
        if load(path, origin) != was:
            raise Unusable(f"{path}: changed while this ran; run it again")
        replace_file(path, note)
