"""viem and ethers compute every vector's hashes, signer and signature bytes as we do."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VECTORS = ROOT / "tests" / "vectors" / "eip712.json"
INSTALL = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
INSTALL_SECONDS = 150
CHECKS_PER_VECTOR = 11

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(
        shutil.which("node") is None or shutil.which("npm") is None,
        reason="node or npm is not on PATH",
    ),
]


@pytest.fixture(scope="module")
def installed() -> Path:
    """A folder with viem and ethers, made once per package.json and kept.

    It appears under its name by one rename, so that two runs at once cannot share a half.
    """
    package = (HERE / "package.json").read_bytes()
    cache = ROOT / ".cache"
    folder = cache / f"node-{hashlib.sha256(package).hexdigest()[:16]}"
    if not folder.exists():
        cache.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
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


def check(folder: Path, vectors: Path) -> tuple[int, dict[str, int], str]:
    """Exit status, the counts and the complaints of one run over a file of vectors."""
    with tempfile.TemporaryDirectory(dir=folder) as beside:  # node looks for modules upwards
        script = Path(beside) / "check_vectors.mjs"
        script.write_bytes((HERE / script.name).read_bytes())
        run = subprocess.run(
            ["node", str(script), str(vectors)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert run.stdout, run.stderr
    counts: dict[str, int] = json.loads(run.stdout)
    return run.returncode, counts, run.stderr


def test_viem_and_ethers_agree_with_every_vector(installed: Path) -> None:
    file = json.loads(VECTORS.read_text(encoding="utf-8"))
    status, counts, complaints = check(installed, VECTORS)
    assert (status, complaints) == (0, "")
    per_file = 2 + 2 * len(file["types"])
    assert counts == {
        "vectors": len(file["vectors"]),
        "checks": per_file + CHECKS_PER_VECTOR * len(file["vectors"]),
        "failures": 0,
    }


def test_the_check_sees_a_wrong_digest(installed: Path, tmp_path: Path) -> None:
    file = json.loads(VECTORS.read_text(encoding="utf-8"))
    file["vectors"][0]["digest"] = "0x" + "00" * 32
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(file), encoding="utf-8")
    status, counts, complaints = check(installed, wrong)
    assert (status, counts["failures"]) == (1, 2)
    assert "digest Quote (plain)" in complaints
