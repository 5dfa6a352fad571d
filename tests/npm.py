"""npm packages for tests: what a package.json pins, installed once and kept."""

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CACHE: Final = ROOT / ".cache"
INSTALL: Final = [
    "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts",
]  # fmt: skip
INSTALL_SECONDS: Final = 150

needs_npm = pytest.mark.skipif(
    shutil.which("node") is None or shutil.which("npm") is None,
    reason="node or npm is not on PATH",
)


def installed(package_json: Path) -> Path:
    """The folder whose `node_modules` holds what the file pins, made once per content and kept.

    It appears under its name by one rename, so that two runs at once cannot share a half.
    """
    package = package_json.read_bytes()
    folder = CACHE / f"node-{hashlib.sha256(package).hexdigest()[:16]}"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            (made / "package.json").write_bytes(package)
            run = subprocess.run(
                ["npm", *INSTALL],
                cwd=made,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
                check=False,
            )
            assert run.returncode == 0, run.stderr
            with contextlib.suppress(OSError):  # another run was faster
                made.rename(folder)
    assert (folder / "node_modules").is_dir()
    return folder
