"""The device key is whole, private and never replaced."""

import os
import stat
import threading
from pathlib import Path

import pytest

from supplier_agent.identity import BadKeyFile, DeviceKey, load_key, load_or_create_key


def test_a_made_key_is_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "new" / "device.key"
    made = load_or_create_key(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create_key(path) == made == load_key(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["device.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "device.key"
    load_or_create_key(path)
    path.chmod(mode)
    with pytest.raises(BadKeyFile, match="chmod 600"):
        load_key(path)


@pytest.mark.parametrize("content", [b"", b"zz" * 32, b"ab" * 31, b"ab" * 33, b"\xff" * 64])
def test_a_file_without_a_key_is_refused_and_not_overwritten(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "device.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(BadKeyFile, match="no key"):
        load_or_create_key(path)
    assert path.read_bytes() == content


def test_a_link_or_a_folder_is_no_key_file(tmp_path: Path) -> None:
    load_or_create_key(tmp_path / "real.key")
    (tmp_path / "link.key").symlink_to(tmp_path / "real.key")
    for path in (tmp_path / "link.key", tmp_path):
        with pytest.raises(BadKeyFile):
            load_or_create_key(path)


def test_a_missing_key_is_told_from_a_made_one(tmp_path: Path) -> None:
    with pytest.raises(BadKeyFile):
        load_key(tmp_path / "none.key")


def test_agents_that_start_at_once_end_with_one_key(tmp_path: Path) -> None:
    path = tmp_path / "device.key"
    barrier = threading.Barrier(8)
    keys: list[DeviceKey] = []

    def start() -> None:
        barrier.wait()
        keys.append(load_or_create_key(path))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert os.listdir(tmp_path) == ["device.key"]  # noqa: PTH208 - names only


def test_the_seed_is_in_no_text(tmp_path: Path) -> None:
    key = load_or_create_key(tmp_path / "device.key")

    assert "seed" not in repr(key)
    assert key.seed.hex() not in repr(key)
