"""viem and ethers compute every vector's hashes, signer and signature bytes as we do."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests import npm

HERE = Path(__file__).parent
VECTORS = npm.ROOT / "tests" / "vectors" / "eip712.json"
CHECKS_PER_VECTOR = 11

pytestmark = [pytest.mark.node, npm.needs_npm]


@pytest.fixture(scope="module")
def installed() -> Path:
    """A folder with viem and ethers."""
    return npm.installed(HERE / "package.json")


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
