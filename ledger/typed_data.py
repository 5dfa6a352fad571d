"""EIP-712 structs of static fields and strings: strict parsing, fast hashing.

A message class states its type once, as the very string that EIP-712 hashes; field names, ABI
words, parsing and the `eth_signTypedData_v4` form follow from it. The dataclass lists the same
fields in the same order in snake_case, with a `_` after a word that Python keeps for itself.
Source of the hashing: EIP-712, "Definition of hashStruct".
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from keyword import iskeyword
from operator import attrgetter
from typing import Any, ClassVar, Final, Self

from ledger.encoding import (
    DOMAIN_TYPE,
    Domain,
    address_word,
    checksum_address,
    domain_separator,
    parse_address,
    parse_bytes32,
    utf8,
)
from ledger.errors import BadAddress, MalformedTypedData
from ledger.hashing import keccak256

MAX_TEXT_BYTES: Final = 1024
"""The longest string a message may carry, in UTF-8 bytes."""

_STRUCT = re.compile(r"(\w+)\((\w+ \w+(?:,\w+ \w+)*)\)")
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,77}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct: its names and the three ways its value is written."""

    name: str
    solidity: str
    attribute: str
    word: Callable[[Any], bytes]
    """The value's 32-byte EIP-712 word."""
    parse: Callable[[object], Any]
    """The value that a message's member stands for; MalformedTypedData when it breaks a rule."""
    show: Callable[[Any], str]
    """The value as a message's member."""


def _uint(name: str, bits: int) -> tuple[Callable[[int], bytes], Callable[[object], int]]:
    def word(value: int) -> bytes:
        if value >> bits:  # also true of every negative number
            raise MalformedTypedData(name, f"out of range for uint{bits}")
        return value.to_bytes(32)

    def parse(given: object) -> int:
        if not isinstance(given, str) or _DECIMAL.fullmatch(given) is None:
            raise MalformedTypedData(name, "not a canonical decimal string")
        value = int(given)
        if value >> bits:
            raise MalformedTypedData(name, f"out of range for uint{bits}")
        return value

    return word, parse


def _bytes32(name: str) -> tuple[Callable[[bytes], bytes], Callable[[object], bytes]]:
    def word(value: bytes) -> bytes:
        if len(value) != 32:
            raise MalformedTypedData(name, f"{len(value)} bytes instead of 32")
        return value

    return word, partial(parse_bytes32, name)


def _text(name: str) -> tuple[Callable[[str], bytes], Callable[[object], str]]:
    def word(value: str) -> bytes:
        data = utf8(name, value)
        if len(data) > MAX_TEXT_BYTES:
            raise MalformedTypedData(name, f"longer than {MAX_TEXT_BYTES} bytes of UTF-8")
        return keccak256(data)

    def parse(given: object) -> str:
        if not isinstance(given, str):
            raise MalformedTypedData(name, "not a string")
        if len(utf8(name, given)) > MAX_TEXT_BYTES:
            raise MalformedTypedData(name, f"longer than {MAX_TEXT_BYTES} bytes of UTF-8")
        return given

    return word, parse


def _address(name: str) -> Callable[[object], str]:
    def parse(given: object) -> str:
        try:
            return parse_address(given)
        except BadAddress as error:
            raise MalformedTypedData(name, error.reason) from None

    return parse


def _field(solidity: str, name: str) -> Field:
    attribute = _HUMP.sub("_", name).lower()
    attribute += "_" * iskeyword(attribute)
    if solidity == "address":
        return Field(name, solidity, attribute, address_word, _address(name), checksum_address)
    if solidity == "bytes32":
        return Field(name, solidity, attribute, *_bytes32(name), show=_show_bytes)
    if solidity == "string":
        return Field(name, solidity, attribute, *_text(name), show=str)
    bits = int(solidity.removeprefix("uint"))
    return Field(name, solidity, attribute, *_uint(name, bits), show=_show_integer)


def _show_bytes(value: bytes) -> str:
    return "0x" + value.hex()


def _show_integer(value: int) -> str:
    return str(int(value))


class StructType:
    """A struct's type, compiled once from the string that EIP-712 hashes."""

    def __init__(self, type_string: str) -> None:
        match = _STRUCT.fullmatch(type_string)
        assert match is not None, type_string
        self.type_string: Final = type_string
        self.type_hash: Final = keccak256(type_string.encode())
        self.name: Final = match[1]
        self.fields: Final = tuple(_field(*member.split(" ")) for member in match[2].split(","))
        self.members: Final = frozenset(field.name for field in self.fields)
        self.words: Final = tuple(field.word for field in self.fields)
        self.values: Final[Callable[[object], tuple[Any, ...]]] = attrgetter(
            *(field.attribute for field in self.fields)
        )

    def declaration(self) -> list[dict[str, str]]:
        """The fields as the `types` member of typed data lists them."""
        return [{"name": field.name, "type": field.solidity} for field in self.fields]


_DOMAIN_STRUCT: Final = StructType(DOMAIN_TYPE)


class TypedMessage:
    """Base of the message classes: frozen slotted dataclasses with a `TYPE`."""

    __slots__ = ()
    TYPE: ClassVar[StructType]

    def struct_hash(self) -> bytes:
        """EIP-712 `hashStruct` of this message, 32 bytes.

        Raises:
            MalformedTypedData: a field is out of its type's range or its text has no UTF-8 form.
            BadAddress: an address field did not come from `parse_address`.
        """
        kind = self.TYPE
        words = [kind.type_hash]
        words += [word(value) for word, value in zip(kind.words, kind.values(self), strict=True)]
        return keccak256(b"".join(words))

    def digest(self, domain: Domain) -> bytes:
        """The 32 bytes that are signed: keccak256(0x19 0x01, domain separator, struct hash).

        Raises:
            MalformedTypedData, BadAddress: see `struct_hash` and `domain_separator`.
        """
        return keccak256(b"\x19\x01" + domain_separator(domain) + self.struct_hash())

    def message(self) -> dict[str, str]:
        """The message as it travels: camelCase, decimal strings, 0x hex, EIP-55 addresses."""
        kind = self.TYPE
        return {
            field.name: field.show(value)
            for field, value in zip(kind.fields, kind.values(self), strict=True)
        }

    def canonical(self) -> bytes:
        """Return the message in RFC 8785 form.

        All keys are ASCII and all values strings, so sorted keys and minimal escapes are the
        whole of that form, and the C encoder makes it (a test compares with `canonical_json`).
        """
        return json.dumps(
            self.message(), ensure_ascii=False, separators=(",", ":"), sort_keys=True
        ).encode()

    def typed_data(self, domain: Domain) -> dict[str, object]:
        """What a wallet's `eth_signTypedData_v4` takes."""
        kind = self.TYPE
        return {
            "types": {
                "EIP712Domain": _DOMAIN_STRUCT.declaration(),
                kind.name: kind.declaration(),
            },
            "primaryType": kind.name,
            "domain": domain.message(),
            "message": self.message(),
        }

    @classmethod
    def parse(cls, message: Mapping[str, object]) -> Self:
        """The message that a JSON object stands for.

        Exactly the type's keys; integers as canonical decimal strings in range; bytes32 as `0x`
        and 64 hex digits; addresses in lower case or EIP-55; text of at most `MAX_TEXT_BYTES`.

        Raises:
            MalformedTypedData: any rule broken; `field` names the member.
        """
        kind = cls.TYPE
        if message.keys() != kind.members:
            _refuse_keys(message, kind)
        make: Callable[..., Self] = cls
        return make(*[field.parse(message[field.name]) for field in kind.fields])


def _refuse_keys(message: Mapping[str, object], kind: StructType) -> None:
    missing = [field.name for field in kind.fields if field.name not in message]
    if missing:
        raise MalformedTypedData(missing[0], "missing")
    unknown = sorted(str(key) for key in message.keys() - kind.members)
    raise MalformedTypedData(ascii(unknown[0])[1:-1][:80], f"not a member of {kind.name}")
