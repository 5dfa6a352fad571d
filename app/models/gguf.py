"""Reads the metadata of GGUF weights: the few lines needed to make and check a tokenizer.

Source: the GGUF specification, version 3, "File structure": little-endian; a string is its
length as uint64 and UTF-8 bytes, an array its element type, its length and its elements.
"""

import struct
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
VERSION = 3
MAX_ITEMS = 10_000_000

_STRING = 8
_ARRAY = 9
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}


class NotGguf(Exception):
    """The file is not GGUF version 3, or it is cut short."""


def read_metadata(path: Path) -> dict[str, object]:
    """Return every metadata field of the weights; arrays are lists.

    Raises:
        NotGguf: another format or version, or a damaged file.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC or _number(file, "<I") != VERSION:
            raise NotGguf(f"{path.name} is not GGUF version {VERSION}")
        _number(file, "<Q")  # the count of tensors, which follow the metadata
        return {_text(file): _value(file, _kind(file)) for _ in range(_length(file))}


def _value(file: BinaryIO, kind: int) -> object:
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        element = _kind(file)
        return [_value(file, element) for _ in range(_length(file))]
    if kind in _SCALARS:
        return _number(file, _SCALARS[kind])
    raise NotGguf(f"unknown value type {kind}")


def _text(file: BinaryIO) -> str:
    return _exactly(file, _length(file)).decode()


def _kind(file: BinaryIO) -> int:
    return int(_number(file, "<I"))


def _length(file: BinaryIO) -> int:
    length = int(_number(file, "<Q"))
    if length > MAX_ITEMS:
        raise NotGguf(f"a length of {length} is not credible")
    return length


def _number(file: BinaryIO, layout: str) -> int | float:
    number: int | float
    (number,) = struct.unpack(layout, _exactly(file, struct.calcsize(layout)))
    return number


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise NotGguf("the file is cut short")
    return data
