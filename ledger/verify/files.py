"""Files, read with a limit and whatever they are, and the one file that is written."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from typing import BinaryIO, Final

from ledger.errors import BadEntry
from ledger.verify.errors import Unusable

MAX_FILES: Final = 100_000
MAX_EXPORT_FILES: Final = 100
PIECE: Final = 1 << 20


class TooLarge(Unusable):
    """A file has more bytes than its kind can have; nothing of it was read."""


def read_limited(path: str, limit: int) -> bytes:
    """The bytes of a regular file. Nothing is read of what is larger, and no pipe is waited for.

    Raises:
        TooLarge: it has more than `limit` bytes.
        Unusable: it cannot be read, or is no regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Unusable(f"{path}: not a regular file")
        if found.st_size > limit:
            raise TooLarge(f"{path}: larger than {limit} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(descriptor)
    if len(data) > limit:  # it grew meanwhile, or says nothing of its size
        raise TooLarge(f"{path}: larger than {limit} bytes")
    return data


def digest_of(path: str, *, size: int) -> bytes | None:
    """The SHA-256 of a regular file of `size` bytes, read piece by piece; None of another size.

    Raises:
        Unusable: it cannot be read, or is no regular file.
    """
    found, left = sha256(), size
    with _opened(path) as file:
        if os.fstat(file.fileno()).st_size != size:
            return None
        while piece := file.read(min(PIECE, left + 1)):
            left -= len(piece)
            if left < 0:  # it grew meanwhile
                return None
            found.update(piece)
    return found.digest() if left == 0 else None


def lines_of(path: str, limit: int) -> Iterator[bytes]:
    """The lines of a file without their line feeds, one in memory at a time.

    Raises:
        Unusable: it cannot be read.
        BadEntry: a line longer than `limit`, or a last one without a line feed.
    """
    with _opened(path) as file:
        while line := file.readline(limit + 1):
            if not line.endswith(b"\n"):
                raise BadEntry(path.rpartition("/")[2], "a line that is too long or does not end")
            yield line[:-1]


def names_in(folder: str) -> set[str]:
    """The names of everything in a folder.

    Raises:
        Unusable: it cannot be read, or holds more than an export does.
    """
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in islice(entries, MAX_EXPORT_FILES + 1)}
    except OSError as error:
        raise _unreadable(folder, error) from None
    if len(names) > MAX_EXPORT_FILES:
        raise Unusable(f"{folder}: more files than an export has")
    return names


def in_folder(folder: str, name: str) -> str:
    """The path of a file of a folder."""
    return os.path.join(folder, name)  # noqa: PTH118 -- see `is_folder`


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with open(descriptor, "rb") as file:  # noqa: PTH123 -- a descriptor has no path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unusable(f"{path}: not a regular file")
        yield file


def is_folder(path: str) -> bool:
    """Whether a path is a folder."""
    return os.path.isdir(path)  # noqa: PTH112 -- pathlib costs start-up time


def receipts_in(folder: str) -> list[str]:
    """The paths of the `.json` files of a folder, by name; folders in it are not looked into.

    Raises:
        Unusable: it cannot be read, holds none or more than `MAX_FILES`.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".json"))
    except OSError as error:
        raise _unreadable(folder, error) from None
    if not 0 < len(names) <= MAX_FILES:
        raise Unusable(f"{folder}: {len(names)} .json files, not 1 to {MAX_FILES}")
    return [os.path.join(folder, name) for name in names]  # noqa: PTH118 -- see `is_folder`


def exists(path: str) -> bool:
    """Whether anything is at a path, a dangling link included."""
    return os.path.lexists(path)


def followed(path: str) -> str:
    """The path that links lead to."""
    return os.path.realpath(path)


@contextmanager
def locked_folder_of(path: str) -> Iterator[None]:
    """Keep other runs from writing a file in the same folder meanwhile.

    Raises:
        Unusable: the folder cannot be opened.
    """
    folder = os.path.dirname(path) or "."  # noqa: PTH120 -- see `is_folder`
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(folder, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: str, data: bytes) -> None:
    """Write a file so that a reader finds the old bytes or the new ones, never a part.

    Raises:
        Unusable: it cannot be written; what was there still is.
    """
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with open(descriptor, "wb") as file:  # noqa: PTH123 -- a descriptor has no path
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)  # noqa: PTH105 -- see `is_folder`
    except OSError as error:
        if exists(temporary):
            os.unlink(temporary)  # noqa: PTH108 -- see `is_folder`
        raise Unusable(f"{path}: cannot be written: {error.strerror}") from None


def _unreadable(path: str, error: OSError | ValueError) -> Unusable:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return Unusable(f"{path}: cannot be read: {reason}")
