import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SYSTEM_POSTGRES = Path("/usr/lib/postgresql/15/bin")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every account may enter (pytest's own are private to us)."""
    path = Path(tempfile.mkdtemp(prefix="offpeak-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(
    params=[
        pytest.param(None, id="packaged"),
        pytest.param(
            SYSTEM_POSTGRES,
            id="system-15",
            marks=pytest.mark.skipif(
                not SYSTEM_POSTGRES.is_dir(), reason="no system Postgres 15 here"
            ),
        ),
    ]
)
def bin_directory(request: pytest.FixtureRequest) -> Path | None:
    """Each Postgres there is: the packaged one, and the system's where it is installed."""
    chosen: Path | None = request.param
    return chosen
