"""A folder that appears whole or not at all.

Files are written beside it under a hidden name that one process at a time holds, and renamed at
the end. What a killed process left there is taken over by the next.
"""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.finance.export.errors import ExportBusy, ExportExists
from ledger.manifest import ExportFile

PRIVATE = 0o700
"""Records hold the salts of their commitments: the files are for their owner."""


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Give an empty folder beside `target`; whatever is in it at the end is removed.

    Raises:
        ExportBusy: another process is at it.
        ExportExists: something that is not ours has its hidden name, a link included.
    """
    folder = target.parent / f".{target.name}.partial"
    target.parent.mkdir(parents=True, exist_ok=True)
    handle = _opened(folder)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExportBusy(target) from None
        if not _is_at(folder, handle):
            raise ExportBusy(target)  # it was finished, and so renamed, just before the lock
        os.fchmod(handle, PRIVATE)
        _empty(folder)
        try:
            yield folder
        finally:
            if _is_at(folder, handle):
                shutil.rmtree(folder)
    finally:
        os.close(handle)


def _opened(folder: Path) -> int:
    """Return a handle of a folder of our own, made if there is none; no link is followed."""
    with suppress(FileExistsError):
        folder.mkdir(mode=PRIVATE)
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise ExportBusy(folder) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EACCES):
            raise ExportExists(folder) from None
        raise
    if os.fstat(handle).st_uid != os.geteuid():
        os.close(handle)
        raise ExportExists(folder)
    return handle


def _is_at(folder: Path, handle: int) -> bool:
    """Return whether the folder by this name is the open one."""
    try:
        return os.path.samestat(folder.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def finish(folder: Path, target: Path) -> None:
    """Give the folder its final name, once all of it is on disk.

    Raises:
        ExportExists: there is something else by that name, or the same with other bytes.
    """
    if target.exists():
        if not same_files(folder, target):
            raise ExportExists(target)
        return
    for path in folder.iterdir():
        _sync(path)
    _sync(folder)
    try:
        folder.rename(target)
    except OSError:  # somebody else's folder came between
        raise ExportExists(target) from None
    _sync(target.parent)


def same_files(one: Path, other: Path) -> bool:
    """Return whether two folders hold the same files with the same bytes."""
    if not other.is_dir() or {p.name for p in one.iterdir()} != {p.name for p in other.iterdir()}:
        return False
    return all(_digest(path) == _digest(other / path.name) for path in one.iterdir())


def files_of(folder: Path) -> tuple[ExportFile, ...]:
    """Return every file of a folder with size and digest, by name."""
    return tuple(
        ExportFile(path.name, path.stat().st_size, _digest(path))
        for path in sorted(folder.iterdir(), key=lambda path: path.name)
    )


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
