"""What a receipt says of the chain: where its checkpoint is anchored, and which contract said yes.

Both are claims that anybody can check with a node of their own; neither is signed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from ledger.encoding import MAX_CHAIN_ID, Address, checksum_address, parse_address
from ledger.errors import BadAddress, BadEntry
from ledger.merkle import MAX_TREE_SIZE
from ledger.strict_json import bytes_of, integer_of, object_of, require_members, text_of

MAX_CONTRACT_SIGNATURE: Final = 4_096
"""The most bytes that a contract wallet's signature may have; passkey wallets need about 600."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The log of `size` with `root`, published by one transaction's `log_index`-th event."""

    chain_id: int
    contract: Address
    size: int
    root: bytes
    tx_hash: bytes
    block_number: int
    block_hash: bytes
    log_index: int

    def document(self) -> dict[str, object]:
        """As it stands in a receipt."""
        return {
            "chain_id": str(self.chain_id),
            "contract": checksum_address(self.contract),
            "size": str(self.size),
            "root": "0x" + self.root.hex(),
            "tx_hash": "0x" + self.tx_hash.hex(),
            "block_number": str(self.block_number),
            "block_hash": "0x" + self.block_hash.hex(),
            "log_index": str(self.log_index),
        }

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(
            given, "chain_id", "contract", "size", "root", "tx_hash", "block_number",
            "block_hash", "log_index", what=field,
        )  # fmt: skip

        def number(name: str, limit: int = 2**63 - 1) -> int:
            return integer_of(given[name], f"{field}.{name}", limit=limit)

        return cls(
            chain_id=number("chain_id", MAX_CHAIN_ID),
            contract=_contract(given["contract"], f"{field}.contract"),
            size=number("size", MAX_TREE_SIZE),
            root=bytes_of(given["root"], f"{field}.root"),
            tx_hash=bytes_of(given["tx_hash"], f"{field}.tx_hash"),
            block_number=number("block_number"),
            block_hash=bytes_of(given["block_hash"], f"{field}.block_hash"),
            log_index=number("log_index"),
        )


class ContractMethod(StrEnum):
    """How a contract wallet's signature was checked: ERC-1271, or ERC-6492 before it is there."""

    DEPLOYED = "erc-1271"
    COUNTERFACTUAL = "erc-6492"


@dataclass(frozen=True, slots=True)
class ContractCheck:
    """That the wallet's contract confirmed a signature, as the gateway saw the chain at a block."""

    method: ContractMethod
    block_number: int
    block_hash: bytes

    def document(self) -> dict[str, object]:
        """As it stands in a receipt."""
        return {
            "method": str(self.method),
            "block_number": str(self.block_number),
            "block_hash": "0x" + self.block_hash.hex(),
        }

    @classmethod
    def parse(cls, value: object, field: str) -> Self:
        """Raises BadEntry: another form."""
        given = object_of(value, field)
        require_members(given, "method", "block_number", "block_hash", what=field)
        method = text_of(given["method"], f"{field}.method")
        if method not in {str(each) for each in ContractMethod}:
            raise BadEntry(f"{field}.method", "neither erc-1271 nor erc-6492")
        return cls(
            ContractMethod(method),
            integer_of(given["block_number"], f"{field}.block_number"),
            bytes_of(given["block_hash"], f"{field}.block_hash"),
        )


def _contract(value: object, field: str) -> Address:
    text = text_of(value, field)
    try:
        address = parse_address(text)
    except BadAddress as error:
        raise BadEntry(field, error.reason) from None
    if text != checksum_address(address):
        raise BadEntry(field, "not in EIP-55 form")
    return address
