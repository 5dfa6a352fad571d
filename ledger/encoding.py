"""How values become bytes: addresses, ids, EIP-712 domains, canonical JSON."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NewType
from uuid import UUID

import rfc8785

from ledger.errors import BadAddress, BadLength, MalformedTypedData, NotCanonical
from ledger.hashing import keccak256

Address = NewType("Address", str)
"""An account on the chain: `0x` and 40 lower-case hex digits inside, EIP-55 on the wire."""

MAX_CHAIN_ID: Final = 2**53 - 1
"""Chain ids travel as JSON numbers, which wallets read as doubles."""

DOMAIN_TYPE: Final = (
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
DOMAIN_TYPE_HASH: Final = keccak256(DOMAIN_TYPE.encode())

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_WORD = re.compile(r"0x[0-9a-fA-F]{64}")
_ADDRESS_PAD: Final = bytes(12)
_UUID_PAD: Final = bytes(16)


@lru_cache(maxsize=4096)
def checksum_address(address: Address) -> str:
    """The address in its EIP-55 form: a letter is upper case where the hash's digit is >= 8."""
    digits = address[2:]
    marks = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if mark >= "8" else digit for digit, mark in zip(digits, marks, strict=False)
    )


def parse_address(text: object) -> Address:
    """The address that `text` writes in lower case or in EIP-55 form.

    Raises:
        BadAddress: another shape (`0X`, wrong length, no text), or a wrong checksum.
    """
    if not isinstance(text, str) or _ADDRESS.fullmatch(text) is None:
        raise BadAddress(text, "0x and 40 hex digits")
    address = Address(text.lower())
    if text != address and text != checksum_address(address):
        raise BadAddress(text, "neither lower case nor a right EIP-55 checksum")
    return address


def address_word(address: Address) -> bytes:
    """The address as an ABI word: 12 zero bytes, then its 20 bytes.

    Raises:
        BadAddress: the value did not come from `parse_address`.
    """
    try:
        word = _ADDRESS_PAD + bytes.fromhex(address[2:])
    except ValueError:
        raise BadAddress(address, "0x and 40 hex digits") from None
    if len(word) != 32:
        raise BadAddress(address, "0x and 40 hex digits")
    return word


def parse_bytes32(field: str, text: object) -> bytes:
    """The 32 bytes that `text` writes as `0x` and 64 hex digits of either case.

    Raises:
        MalformedTypedData: any other form; it carries `field`.
    """
    if not isinstance(text, str) or _WORD.fullmatch(text) is None:
        raise MalformedTypedData(field, "not 0x and 64 hex digits")
    return bytes.fromhex(text[2:])


def uuid_bytes32(value: UUID) -> bytes:
    """The id as a bytes32: 16 zero bytes, then the id's 16 bytes in network order."""
    return _UUID_PAD + value.bytes


def uuid_from_bytes32(word: bytes) -> UUID:
    """The id that `uuid_bytes32` wrote.

    Raises:
        BadLength: not 32 bytes, or the first 16 are not zero.
    """
    if len(word) != 32 or word[:16] != _UUID_PAD:
        raise BadLength("a left-padded id", expected=16, found=len(word.lstrip(b"\0")))
    return UUID(bytes=word[16:])


def utf8(field: str, text: str) -> bytes:
    """The text's UTF-8 bytes.

    Raises:
        MalformedTypedData: it contains a lone surrogate, which has no UTF-8 form.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise MalformedTypedData(field, "contains a lone surrogate") from None


@dataclass(frozen=True, slots=True)
class Domain:
    """An EIP-712 domain: which system, on which chain, under which contract a signature counts."""

    name: str
    version: str
    chain_id: int
    verifying_contract: Address

    def message(self) -> dict[str, object]:
        """The `domain` member of typed data; `chainId` is a number, as wallets expect."""
        return {
            "name": self.name,
            "version": self.version,
            "chainId": self.chain_id,
            "verifyingContract": checksum_address(self.verifying_contract),
        }


@lru_cache(maxsize=64)
def domain_separator(domain: Domain) -> bytes:
    """EIP-712 `hashStruct` of the domain, 32 bytes; computed once per domain.

    Raises:
        MalformedTypedData: the chain id is not in 1 .. 2^53 - 1.
        BadAddress: the contract is no address.
    """
    if not 1 <= domain.chain_id <= MAX_CHAIN_ID:
        raise MalformedTypedData("chainId", f"not in 1..{MAX_CHAIN_ID}")
    return keccak256(
        DOMAIN_TYPE_HASH
        + keccak256(utf8("name", domain.name))
        + keccak256(utf8("version", domain.version))
        + domain.chain_id.to_bytes(32)
        + address_word(domain.verifying_contract)
    )


_PLAIN: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
_LARGEST_INTEGER: Final = 2**53 - 1


def _is_plain(value: object, depth: int = 8) -> bool:
    """Return whether the C encoder's form is canonical; False also when nested deeper."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if isinstance(value, int) and kind is int:
        return -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER
    if depth == 0:
        return False
    if isinstance(value, dict) and kind is dict:
        return all(
            type(key) is str and key.isascii() and _is_plain(held, depth - 1)
            for key, held in value.items()
        )
    if isinstance(value, list) and kind is list:
        return all(_is_plain(held, depth - 1) for held in value)
    return False


def canonical_json(value: object) -> bytes:
    """The RFC 8785 form of a value made of dict, list, tuple, str, int, float, bool and None.

    Integers beyond 2^53 - 1 are refused, not rounded: write those as decimal strings.

    Where no number is a fraction and all keys are ASCII, sorted keys and minimal escapes are the
    whole of that form, and the C encoder makes it, in half the time (a test compares).

    Raises:
        NotCanonical: the value has no such form, or nests deeper than the interpreter allows.
    """
    try:
        if _is_plain(value):
            return _PLAIN.encode(value).encode()
    except UnicodeEncodeError:
        pass  # the slow form says what is wrong
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # its own checks refuse the rest
    except rfc8785.CanonicalizationError as error:
        raise NotCanonical(str(error)) from None
    except UnicodeEncodeError:
        raise NotCanonical("a key contains a lone surrogate") from None
    except RecursionError:
        raise NotCanonical("nested too deeply") from None
