"""Solidity's functions and events as values, each made from its declaration.

A declaration is Solidity's own text, so that it can be read beside the contract; tests compare all
of them with the packaged ABI and their bytes with web3's. Coding is `eth_abi`'s, strict.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from app.chain.blocks import Log
from app.chain.errors import MalformedAnswer
from ledger.hashing import keccak256

SELECTOR_BYTES: Final = 4

_FUNCTION: Final = re.compile(r"(\w+)\(([^)]*)\)(?:\(([^)]*)\))?")
_EVENT: Final = re.compile(r"(\w+)\(([^)]*)\)")


def _split(parameters: str | None) -> tuple[str, ...]:
    return tuple(parameters.split(",")) if parameters else ()


class Function:
    """One function: `Function("deposit(address,uint256,bytes32)")`, results in a second pair."""

    def __init__(self, declaration: str) -> None:
        """Take `name(types)` or `name(types)(result types)`, without names or spaces."""
        match = _FUNCTION.fullmatch(declaration)
        assert match is not None, declaration
        self.name: Final = match[1]
        self.inputs: Final = _split(match[2])
        self.outputs: Final = _split(match[3])
        self.signature: Final = f"{match[1]}({match[2]})"
        self.selector: Final = keccak256(self.signature.encode())[:SELECTOR_BYTES]

    def data(self, *arguments: object) -> bytes:
        """The call data; a value out of its type's range is a bug of ours (EncodingError)."""
        return self.selector + encode(self.inputs, arguments)

    def results(self, answer: bytes) -> tuple[object, ...]:
        """The results in an answer; addresses in lower case.

        Raises:
            MalformedAnswer: empty (there is no such function), short, or not those types.
        """
        try:
            return tuple(decode(self.outputs, answer))
        except (DecodingError, OverflowError, UnicodeDecodeError) as error:
            raise MalformedAnswer(self.name, type(error).__name__) from None

    def integer(self, answer: bytes) -> int:
        """The one result, an integer or a bool. Raises MalformedAnswer."""
        (found,) = self.results(answer)
        assert isinstance(found, int)
        return found

    def text(self, answer: bytes) -> str:
        """The one result, an address or a string. Raises MalformedAnswer."""
        (found,) = self.results(answer)
        assert isinstance(found, str)
        return found

    def octets(self, answer: bytes) -> bytes:
        """The one result, bytes. Raises MalformedAnswer."""
        (found,) = self.results(answer)
        assert isinstance(found, bytes)
        return found


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    solidity: str
    indexed: bool


class Event:
    """One event, from its Solidity declaration: `Deposited(address indexed payer,...)`."""

    def __init__(self, declaration: str) -> None:
        """Take `Name(type [indexed] name,...)` with single spaces and none after commas."""
        match = _EVENT.fullmatch(declaration)
        assert match is not None, declaration
        self.name: Final = match[1]
        self.parameters: Final = tuple(_parameter(one) for one in match[2].split(","))
        types = ",".join(parameter.solidity for parameter in self.parameters)
        self.signature: Final = f"{self.name}({types})"
        self.topic: Final = keccak256(self.signature.encode())
        self._topics: Final = [p for p in self.parameters if p.indexed]
        self._data: Final = [p for p in self.parameters if not p.indexed]

    def arguments(self, log: Log) -> dict[str, object]:
        """The event's arguments by name, in the order of the declaration.

        Raises:
            MalformedAnswer: the log is another event, or not of these types.
        """
        if len(log.topics) != 1 + len(self._topics) or log.topics[0] != self.topic:
            raise MalformedAnswer(self.name, "other topics")
        found: dict[str, object] = {}
        try:
            for parameter, topic in zip(self._topics, log.topics[1:], strict=True):
                (found[parameter.name],) = decode([parameter.solidity], topic)
            values = decode([p.solidity for p in self._data], log.data)
        except DecodingError as error:
            raise MalformedAnswer(self.name, type(error).__name__) from None
        found |= {p.name: value for p, value in zip(self._data, values, strict=True)}
        return {parameter.name: found[parameter.name] for parameter in self.parameters}


def _parameter(text: str) -> _Parameter:
    parts = text.split(" ")
    indexed = parts[1:-1] == ["indexed"]
    assert len(parts) == (3 if indexed else 2), text
    return _Parameter(parts[-1], parts[0], indexed)


def encode_arguments(types: Sequence[str], *arguments: object) -> bytes:
    """ABI encoding without a selector: constructor arguments, and what contracts hash."""
    return encode(types, arguments)
