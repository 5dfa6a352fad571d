import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from app.models.catalogue import RELEASES, Catalogue, load_release
from app.models.errors import ContextExceeded, ReleaseBroken, UnknownModel
from app.models.release import ModelRelease
from ledger.encoding import canonical_json

DEMO = "smollm2-135m-instruct"
CANARY = {
    "messages": [{"role": "user", "content": "x"}],
    "max_output_tokens": 1,
    "answer": "y",
}


@pytest.fixture
def release() -> ModelRelease:
    return Catalogue().get(DEMO)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(RELEASES / DEMO, tmp_path / DEMO)


def rewrite(folder: Path, **changes: object) -> None:
    path = folder / "release.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_demo_release_pins_its_weights_and_its_licence(release: ModelRelease) -> None:
    assert release.revision == f"0x{release.weights.sha256}"
    assert release.licence == "Apache-2.0"
    assert release.context_tokens == 2048
    assert "Apache License" in (Catalogue().folder_of(release) / "LICENSE.txt").read_text()


def test_the_tokenizer_is_the_one_made_from_the_weights(release: ModelRelease) -> None:
    made = "2225e8fb36485529d3c826106f8bec359b719a6bcc3f5d6314a834c7be153905"
    assert [file.sha256 for file in release.files if file.name == "tokenizer.json"] == [made]


def test_a_fingerprint_is_the_digest_of_the_canonical_document(release: ModelRelease) -> None:
    document = json.loads((RELEASES / DEMO / "release.json").read_text())
    assert release.fingerprint == sha256(canonical_json(document)).hexdigest()


def test_any_other_document_has_another_fingerprint(copy: Path, release: ModelRelease) -> None:
    rewrite(copy, context_tokens=4096)
    assert load_release(copy).fingerprint != release.fingerprint


@pytest.mark.parametrize("name", ["tokenizer.json", "chat_template.jinja", "LICENSE.txt"])
def test_a_changed_or_missing_file_breaks_the_release(copy: Path, name: str) -> None:
    path = copy / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ReleaseBroken, match=name):
        load_release(copy)
    path.unlink()
    with pytest.raises(ReleaseBroken, match=name):
        load_release(copy)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "another"},
        {"revision": "0x" + "0" * 64},
        {"revision": "main"},
        {"files": []},
        {"context_tokens": 0},
        {"region": "local"},
        {"files": [{"name": "../x.gguf", "sha256": "0" * 64, "size": 1}]},
        {"canary": CANARY | {"messages": [{"role": "user", "content": "x", "name": "y"}]}},
        {"canary": CANARY | {"messages": [{"role": "user", "content": "<|im_end|>"}]}},
        {"canary": CANARY | {"answer": ""}},
        {"files": [{"name": "tokenizer.json", "sha256": "0" * 64, "size": 1}]},
    ],
)
def test_a_document_that_pins_too_little_is_refused(copy: Path, changes: dict[str, object]) -> None:
    rewrite(copy, **changes)
    with pytest.raises(ReleaseBroken):
        load_release(copy)


def test_a_folder_without_a_document_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(ReleaseBroken):
        load_release(tmp_path)


def test_a_model_nobody_approved_is_unknown() -> None:
    with pytest.raises(UnknownModel):
        Catalogue().get("smollm2-135m")


def test_file_names_are_unique_over_all_releases() -> None:
    """The weights cache is one folder for all releases."""
    names = [release.weights.name for release in Catalogue()]
    assert names
    assert len(set(names)) == len(names)


def test_prompt_and_ceiling_must_fit_the_context_together(release: ModelRelease) -> None:
    release.ensure_fits(input_tokens=2000, max_output_tokens=48)
    with pytest.raises(ContextExceeded, match=r"2000 .* 49 .* 2048"):
        release.ensure_fits(input_tokens=2000, max_output_tokens=49)
