"""JSON that has one form: what is signed or hashed is read back as the bytes it was.

`parse_canonical` takes RFC 8785 bytes and nothing else, so a value has one text, and two keys of
one name, odd spaces or another order are refused. `parse_object` reads documents that people
may have formatted; it refuses what parsers disagree on.
"""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Final, NoReturn

from ledger.encoding import canonical_json
from ledger.errors import BadEntry, NotCanonical
from ledger.hashing import DIGEST_BYTES

MAX_DEPTH: Final = 16
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,77}")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string, closed or not: what is left open reaches to the end and is looked at once."""
_HEX = re.compile(r"0x(?:[0-9a-f]{2})*")


def parse_object(data: bytes, *, what: str, fractions: bool = False) -> dict[str, object]:
    """The object that a JSON text in UTF-8 writes.

    Args:
        data: The text.
        what: Its name in errors.
        fractions: Whether numbers may have a fraction or an exponent; signed documents have none.

    Raises:
        BadEntry: not UTF-8 or not JSON, no object, a key twice, a number that is no integer of at
            most 2^53 - 1 (nor a finite fraction, where allowed), or nested deeper than
            `MAX_DEPTH`.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadEntry(what, "not UTF-8") from None
    if _depth(text) > MAX_DEPTH:
        raise BadEntry(what, f"nested deeper than {MAX_DEPTH}")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_float=_fraction if fractions else _no_number,
            parse_constant=_no_number,
            parse_int=_small_integer,
        )
    except _Refused as refused:
        raise BadEntry(what, str(refused)) from None
    except (ValueError, RecursionError):
        raise BadEntry(what, "not JSON") from None
    if not isinstance(value, dict):
        raise BadEntry(what, "not a JSON object")
    return value


def parse_canonical(data: bytes, *, what: str) -> dict[str, object]:
    """The object whose RFC 8785 form is exactly `data`.

    Raises:
        BadEntry: as `parse_object`, or another text than the canonical one.
    """
    value = parse_object(data, what=what)
    try:
        is_canonical = canonical_json(value) == data
    except NotCanonical:
        is_canonical = False
    if not is_canonical:
        raise BadEntry(what, "not in its RFC 8785 form")
    return value


def require_members(value: Mapping[str, object], *names: str, what: str) -> None:
    """Check that an object has exactly these members.

    Raises:
        BadEntry: one is missing or there is another.
    """
    missing = [name for name in names if name not in value]
    if missing:
        raise BadEntry(f"{what}.{missing[0]}", "missing")
    unknown = sorted(value.keys() - set(names))
    if unknown:
        raise BadEntry(what, f"unknown member {ascii(unknown[0])[:60]}")


def text_of(value: object, field: str) -> str:
    """The text itself.

    Raises:
        BadEntry: not a text, or one with a lone surrogate, which has no bytes to sign or hash.
    """
    if not isinstance(value, str):
        raise BadEntry(field, "not a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadEntry(field, "a lone surrogate") from None
    return value


def integer_of(value: object, field: str, *, limit: int = 2**63 - 1) -> int:
    """The number that a decimal string writes.

    Raises:
        BadEntry: not ASCII digits without a leading zero, or above `limit`.
    """
    text = text_of(value, field)
    if _DECIMAL.fullmatch(text) is None or int(text) > limit:
        raise BadEntry(field, f"not a decimal string in 0..{limit}")
    return int(text)


def bytes_of(value: object, field: str, *, length: int | None = DIGEST_BYTES) -> bytes:
    """The bytes that `0x` and lower-case hex digits write.

    Raises:
        BadEntry: another form, or another number of bytes than `length`.
    """
    text = text_of(value, field)
    if _HEX.fullmatch(text) is None:
        raise BadEntry(field, "not 0x and lower-case hex digits")
    raw = bytes.fromhex(text[2:])
    if length is not None and len(raw) != length:
        raise BadEntry(field, f"{len(raw)} bytes instead of {length}")
    return raw


def list_of(value: object, field: str, *, limit: int) -> list[object]:
    """The list itself.

    Raises:
        BadEntry: not a list, or longer than `limit`.
    """
    if not isinstance(value, list) or len(value) > limit:
        raise BadEntry(field, f"not a list of at most {limit}")
    return value


def object_of(value: object, field: str) -> dict[str, object]:
    """The object itself.

    Raises:
        BadEntry: not an object.
    """
    if not isinstance(value, dict):
        raise BadEntry(field, "not an object")
    return value


class _Refused(Exception):
    pass


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Refused(f"member {ascii(name)[:60]} stands there twice")
            seen.add(name)
    return found


def _no_number(text: str) -> NoReturn:
    raise _Refused(f"{text[:20]} is no integer")


def _fraction(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise _Refused(f"{text[:20]} is out of range")
    return value


def _small_integer(text: str) -> int:
    if text == "-0":
        raise _Refused("-0 is no integer")
    if len(text) > 17 or abs(int(text)) > 2**53 - 1:
        raise _Refused("a number above 2^53 - 1")
    return int(text)


def _depth(text: str) -> int:
    """How deep brackets nest outside of strings, read no further than beyond `MAX_DEPTH`."""
    deepest = depth = 0
    for token in _TOKEN.finditer(text):
        sign = text[token.start()]
        if sign in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return depth
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth -= 1
    return deepest
