"""The unprivileged account an engine runs under when we are root.

Postgres refuses to run as root, and a server that needs no privilege should have none.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An existing system account; none is ever created."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Give one file or directory to this account."""
        os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether this account may traverse every directory down to `path` and enter or run it.

        Judged by mode bits; access lists are not read.
        """
        resolved = path.resolve()
        return all(self._may_execute(part) for part in (*resolved.parents, resolved))

    def _may_execute(self, path: Path) -> bool:
        found = path.stat()
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)


def engine_account() -> Account | None:
    """Return `postgres`, else `nobody`, when we are root; None when we already are unprivileged.

    Raises:
        LookupError: root on a system that has neither account.
    """
    if os.geteuid() != 0:
        return None
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise LookupError(f"none of the accounts {', '.join(_CANDIDATES)} exists")
