"""Recursive length prefix, as far as transactions need it: byte strings and lists of them.

Source: Ethereum yellow paper, appendix B. Decoding takes the one canonical form of each value only.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

Item: TypeAlias = bytes | Sequence["Item"]

_SHORT: Final = 55
_STRING: Final = 0x80
_LIST: Final = 0xC0
_MAX_DEPTH: Final = 8


class MalformedRlp(ValueError):
    """The bytes are not one item in its canonical form."""


def rlp_encode(item: Item) -> bytes:
    """The encoding of a byte string or a list."""
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < _STRING:
            return item
        return _prefix(_STRING, len(item)) + item
    body = b"".join(map(rlp_encode, item))
    return _prefix(_LIST, len(body)) + body


def rlp_integer(value: int) -> bytes:
    """An integer as a byte string without leading zeros; zero is empty."""
    return value.to_bytes((value.bit_length() + 7) // 8)


def rlp_decode(raw: bytes) -> Item:
    """The one item that `raw` encodes.

    Raises:
        MalformedRlp: not canonical, not complete, too deep, or followed by more.
    """
    item, end = _item(raw, 0, _MAX_DEPTH)
    if end != len(raw):
        raise MalformedRlp("more bytes follow")
    return item


def _prefix(offset: int, length: int) -> bytes:
    if length <= _SHORT:
        return bytes((offset + length,))
    size = rlp_integer(length)
    return bytes((offset + _SHORT + len(size),)) + size


def _item(raw: bytes, start: int, depth: int) -> tuple[Item, int]:
    if start >= len(raw) or depth == 0:
        raise MalformedRlp("cut off or too deep")
    first = raw[start]
    if first < _STRING:
        return raw[start : start + 1], start + 1
    offset = _LIST if first >= _LIST else _STRING
    begin, end = _extent(raw, start, first - offset)
    if offset == _STRING:
        if end - begin == 1 and raw[begin] < _STRING:
            raise MalformedRlp("a single byte with a prefix")
        return raw[begin:end], end
    items: list[Item] = []
    while begin < end:
        item, begin = _item(raw[:end], begin, depth - 1)
        items.append(item)
    return items, end


def _extent(raw: bytes, start: int, length: int) -> tuple[int, int]:
    begin = start + 1
    if length > _SHORT:
        size = raw[begin : begin + length - _SHORT]
        begin += length - _SHORT
        length = int.from_bytes(size)
        if size[:1] in {b"", b"\0"} or length <= _SHORT:
            raise MalformedRlp("a length that is not canonical")
    if begin + length > len(raw):
        raise MalformedRlp("cut off")
    return begin, begin + length
