"""The names of the errors that contracts revert with."""

from functools import cache
from typing import Final

from app.chain.artifacts import CONTRACTS, load_artifact
from ledger.hashing import keccak256

_SELECTOR_BYTES: Final = 4
_OF_SOLIDITY: Final = ("Error(string)", "Panic(uint256)")


def error_name(reverted: bytes) -> str:
    """The name of the error whose selector begins the revert's data, empty when unknown."""
    return _names().get(reverted[:_SELECTOR_BYTES], "")


@cache
def _names() -> dict[bytes, str]:
    signatures = list(_OF_SOLIDITY)
    for contract in CONTRACTS:
        signatures += load_artifact(contract).signatures("error")
    return {
        keccak256(signature.encode())[:_SELECTOR_BYTES]: signature.partition("(")[0]
        for signature in signatures
    }
