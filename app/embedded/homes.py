"""Where an engine keeps its data: a temporary directory, or a home that outlives it."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from app.embedded.account import Account
from app.embedded.errors import HomeInUse

_STATE_ROOT = Path("/var/lib/offpeak")
_LOCK_PROBE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A directory of one engine, locked for this instance.

    `path` is ours and traversable for the engine's account; `lock_fd` stays open while anything
    of the instance lives. `temporary` homes go when the engine stops.
    """

    path: Path
    lock_fd: int
    temporary: bool

    def close(self) -> None:
        """Let go of the lock; remove a temporary home."""
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock_fd)

    def new_file(self, name: str, account: Account | None, content: str = "") -> Path:
        """Write a file only we, or only the engine's account, may read (0600), anew."""
        path = self.path / name
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(content)
        if account is not None:
            account.own(path)
        return path

    def child(self, name: str, account: Account | None) -> Path:
        """Return a private (0700) directory below the home, owned by the engine's account."""
        directory = self.path / name
        directory.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            account.own(directory)
        return directory


def open_home(
    wanted: Path | None, account: Account | None, *, engine: str, timeout_seconds: float
) -> Home:
    """Make and lock the home of `engine`: `wanted`/`engine`, or a temporary one for None.

    When root's account for engines cannot traverse to `wanted` (a checkout under /root), the data
    lives in /var/lib/offpeak/<digest of the path>, and `wanted`/`engine` is a link to it.

    Raises:
        HomeInUse: another instance still holds it after `timeout_seconds`.
    """
    if wanted is None:
        path = Path(tempfile.mkdtemp(prefix=f"offpeak-{engine}-"))
    else:
        path = _persistent(wanted, account, engine=engine)
    if account is not None:
        path.chmod(0o711)
    lock_fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + timeout_seconds
    while not _try_lock(lock_fd):
        if time.monotonic() >= end:
            os.close(lock_fd)
            raise HomeInUse(path)
        time.sleep(_LOCK_PROBE_SECONDS)
    return Home(path=path, lock_fd=lock_fd, temporary=wanted is None)


def _persistent(wanted: Path, account: Account | None, *, engine: str) -> Path:
    wanted.mkdir(mode=0o755, parents=True, exist_ok=True)
    path = wanted.resolve() / engine
    if path.is_symlink():
        path = path.resolve()
    elif not path.exists() and account is not None and not account.reaches(wanted):
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        elsewhere = _STATE_ROOT / digest
        elsewhere.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.symlink_to(elsewhere)
        path = elsewhere
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
