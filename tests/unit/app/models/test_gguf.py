import struct
from pathlib import Path

import pytest

from app.models.gguf import NotGguf, read_metadata


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(*fields: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields)) + b"".join(fields)


NUMBER = text("n") + struct.pack("<Ii", 5, -7)
FLAG = text("f") + struct.pack("<I?", 7, True)


def test_numbers_flags_and_lists_of_text_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    words = text("w") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    path.write_bytes(gguf(NUMBER, FLAG, words))
    assert read_metadata(path) == {"n": -7, "f": True, "w": ["a", "b"]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GGML" + gguf()[4:],
        b"GGUF" + struct.pack("<IQQ", 2, 0, 0),
        gguf(NUMBER)[:-1],
        gguf(text("x") + struct.pack("<I", 13)),
        gguf(struct.pack("<Q", 2**40)),
    ],
)
def test_anything_else_is_not_gguf(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    with pytest.raises(NotGguf):
        read_metadata(path)
