"""Wrong weights are noticed before anything is served."""

import hashlib
import json
from pathlib import Path

import pytest

from supplier_agent.release import BadRelease, WrongWeights, load_release, verify_files

WEIGHTS = b"weights" * 100


def write_release(folder: Path, **changes: object) -> Path:
    document: dict[str, object] = {
        "id": "tiny",
        "revision": "r1",
        "files": [
            {
                "name": "Tiny.gguf",
                "sha256": hashlib.sha256(WEIGHTS).hexdigest(),
                "size": len(WEIGHTS),
            }
        ],
        "context_tokens": 64,
        "canary": {
            "messages": [{"role": "user", "content": "x"}],
            "max_output_tokens": 1,
            "answer": "y",
        },
    }
    path = folder / "release.json"
    path.write_text(json.dumps(document | changes), encoding="utf-8")
    return path


def test_wrong_revision_served_silently(tmp_path: Path) -> None:
    """Lesson: an agent that loads other weights than the release's must not start."""
    release = load_release(write_release(tmp_path))
    weights = tmp_path / "any-name.gguf"
    weights.write_bytes(WEIGHTS)
    verify_files(release, weights)

    weights.write_bytes(b"x" + WEIGHTS[1:])
    with pytest.raises(WrongWeights, match="sha256"):
        verify_files(release, weights)
    weights.write_bytes(WEIGHTS[:-1])
    with pytest.raises(WrongWeights, match="bytes"):
        verify_files(release, weights)
    weights.unlink()
    with pytest.raises(WrongWeights, match="no file"):
        verify_files(release, weights)


def test_a_document_away_from_its_folder_is_told_to_stay_there(tmp_path: Path) -> None:
    tokenizer = {"name": "tokenizer.json", "sha256": hashlib.sha256(b"").hexdigest(), "size": 0}
    release = load_release(write_release(tmp_path, files=[tokenizer]))
    with pytest.raises(WrongWeights, match=r"release\.json must stay in its folder"):
        verify_files(release, tmp_path / "any.gguf")


def test_the_fingerprint_covers_every_field_and_no_layout(tmp_path: Path) -> None:
    plain = load_release(write_release(tmp_path)).fingerprint
    path = write_release(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4), encoding="utf-8")

    assert load_release(path).fingerprint == plain
    assert load_release(write_release(tmp_path, licence="MIT")).fingerprint != plain


@pytest.mark.parametrize(
    "changes",
    [
        {"files": []},
        {"files": [{"name": "../up.gguf", "sha256": "0" * 64, "size": 1}]},
        {"canary": None},
        {"context_tokens": 0},
    ],
)
def test_a_document_that_says_too_little_is_refused(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(BadRelease):
        load_release(write_release(tmp_path, **changes))


def test_a_missing_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRelease):
        load_release(tmp_path / "release.json")
