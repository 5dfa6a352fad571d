"""The program: in this process, which is quick, or as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from app.cli.program import app

ROOT = Path(__file__).parents[3]


def invoked(home: Path, *arguments: str, **environ: str) -> Result:
    """Run one command in this process against the all-in-one of `home`."""
    outer = {name: None for name in os.environ if name.startswith(("OFFPEAK_", "ETH_"))}
    runner = CliRunner(env={**outer, "OFFPEAK_HOME": str(home), **environ})
    return runner.invoke(app, arguments)


def offpeak(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command as a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFPEAK_")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env={**kept, "OFFPEAK_HOME": str(home), "PYTHONPATH": str(ROOT)},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
