"""The development chain's program, from the npm package @foundry-rs/anvil, installed once.

The npm package only points to one per platform that holds the binary; no script of either is run.
Nothing here is needed in production, which is given the URL of a real chain.
"""

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.embedded.errors import BinaryMissing, NodeMissing, NpmFailed

PACKAGE: Final = "@foundry-rs/anvil"
VERSION: Final = "1.7.1"
INSTALL_SECONDS: Final = 180

_MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def anvil_program(environ: Mapping[str, str]) -> Path:
    """Return anvil: the one that OFFPEAK_ANVIL names, one on PATH of this version, or npm's.

    npm's is installed into the user's cache when it is not there yet (44 MB).

    Raises:
        NodeMissing: none of them is there, and no npm to install it with.
        NpmFailed: npm could not install it. BinaryMissing: the named one is no file.
    """
    if named := environ.get("OFFPEAK_ANVIL"):
        if not Path(named).is_file():
            raise BinaryMissing("anvil", looked_in=f"OFFPEAK_ANVIL ({named})")
        return Path(named)
    path = environ.get("PATH", "")
    found = shutil.which("anvil", path=path)
    if found is not None and _is_our_version(found):
        return Path(found)
    installed = _folder(environ) / _binary()
    return installed if installed.is_file() else _install(environ, installed)


def can_have_anvil(environ: Mapping[str, str]) -> bool:
    """Return whether `anvil_program` has something to work with: a named one, or npm."""
    path = environ.get("PATH", "")
    return bool(environ.get("OFFPEAK_ANVIL")) or (
        shutil.which("npm", path=path) is not None and shutil.which("node", path=path) is not None
    )


def _is_our_version(program: str) -> bool:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return VERSION in done.stdout


def _folder(environ: Mapping[str, str]) -> Path:
    cache = environ.get("XDG_CACHE_HOME") or str(
        Path(environ.get("HOME", "~")).expanduser() / ".cache"
    )
    return Path(cache) / "offpeak" / f"anvil-{VERSION}"


def _binary() -> Path:
    system, machine = platform.system().lower(), platform.machine().lower()
    package = f"{PACKAGE}-{system}-{_MACHINES.get(machine, machine)}"
    return Path("node_modules", *package.split("/"), "bin", "anvil")


def _install(environ: Mapping[str, str], installed: Path) -> Path:
    if not can_have_anvil(environ):
        raise NodeMissing
    folder = _folder(environ)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="anvil-") as work:
        _run_npm(environ, Path(work))
        if not (Path(work) / _binary()).is_file():
            raise NpmFailed(f"{PACKAGE} has no build for this machine")
        try:
            Path(work).rename(folder)
        except OSError:
            if not installed.is_file():  # else somebody was quicker
                raise
        else:
            Path(work).mkdir()  # for the cleaning up
    return installed


def _run_npm(environ: Mapping[str, str], work: Path) -> None:
    options = ("--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--no-save")
    try:
        done = subprocess.run(
            ["npm", "install", "--prefix", str(work), *options, f"{PACKAGE}@{VERSION}"],
            capture_output=True,
            text=True,
            env=dict(environ),
            cwd=work,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NpmFailed(f"no answer within {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise NpmFailed(lines[0])
