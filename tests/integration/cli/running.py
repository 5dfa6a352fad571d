"""The program as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def offpeak(home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run one command against the all-in-one of `home`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFPEAK_")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env={**kept, "OFFPEAK_HOME": str(home), "PYTHONPATH": str(ROOT), **environ},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
