"""What the chain says of a receipt, as nodes of the reader's choice show it at a finalized block.

A contradiction is only what every node states: another root, or a contract that says no. A node
that does not answer, knows nothing or disagrees with another leaves the question open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Final, Protocol

from ledger.encoding import Address, checksum_address
from ledger.hashing import keccak256
from ledger.merkle import TreeHead
from ledger.onchain import Anchor, ContractCheck
from ledger.verify.errors import ChainTrouble, Refused

ROOT_AT: Final = keccak256(b"rootAt(uint64)")[:4]
IS_VALID_SIGNATURE: Final = keccak256(b"isValidSignature(bytes32,bytes)")[:4]
CONFIRMED: Final = IS_VALID_SIGNATURE + bytes(28)
"""What a contract answers that confirms a signature (ERC-1271)."""
WRAPPED: Final = bytes.fromhex("6492" * 16)
"""How a signature ends that brings the factory call of its wallet (ERC-6492)."""
_WORD: Final = 32


@dataclass(frozen=True, slots=True)
class Block:
    """A block; `time` in unix seconds."""

    number: int
    hash: bytes
    time: int

    def __str__(self) -> str:
        return f"finalized block {self.number} of {_shown(self.time)}"


class View(Protocol):
    """One node's chain as of one finalized block. All raise ChainTrouble instead of guessing."""

    @property
    def block(self) -> Block:
        """The block that everything is read at."""

    def code(self, address: Address) -> bytes:
        """The contract code of an address, empty where there is none."""

    def call(self, to: Address, data: bytes, *, at: bytes | None = None) -> bytes:
        """What a contract answers, at the block of hash `at` when given."""

    def hash_at(self, number: int) -> bytes:
        """The hash of the block at a height."""


class Chain(Protocol):
    """The nodes to ask; each must confirm."""

    def views(self) -> Sequence[View]:
        """At least one. Raises ChainTrouble: a node does not answer, or is of another chain."""


def check_claim(anchor: Anchor, head: TreeHead, *, chain_id: int, contract: Address) -> None:
    """Check that an anchor is of this checkpoint, in the contract that the policy names.

    Raises:
        Refused: it is not.
    """
    if (anchor.chain_id, anchor.contract) != (chain_id, contract):
        raise Refused(
            f"anchored in {checksum_address(anchor.contract)} on chain {anchor.chain_id},"
            f" not in {checksum_address(contract)} on chain {chain_id}"
        )
    if (anchor.size, anchor.root) != (head.size, head.root):
        raise Refused(
            f"an anchor of {anchor.size} entries with root {anchor.root.hex()}, not of the"
            " receipt's checkpoint"
        )


def anchored_at(chain: Chain, head: TreeHead, *, contract: Address) -> Block | None:
    """The lowest finalized block at which every node has this head anchored; None: nowhere yet.

    Raises:
        ChainTrouble: a node gives no answer, or two disagree.
        Refused: another root was published for this size.
    """
    views = chain.views()
    roots = {_root_at(view, contract, head.size) for view in views}
    if len(roots) > 1:
        raise ChainTrouble("the nodes disagree about what is anchored")
    [root] = roots
    if not any(root):
        return None
    if root != head.root:
        raise Refused(
            f"the root on chain for {head.size} entries is {root.hex()}, not {head.root.hex()}:"
            " keep this file, it is evidence of a forked log"
        )
    return min((view.block for view in views), key=lambda each: each.number)


def _root_at(view: View, contract: Address, size: int) -> bytes:
    if not view.code(contract):
        raise ChainTrouble(f"no contract at {checksum_address(contract)} at {view.block}")
    root = view.call(contract, ROOT_AT + size.to_bytes(_WORD))
    if len(root) != _WORD:
        raise ChainTrouble(f"{checksum_address(contract)} is no receipt anchor")
    return root


class Said(Enum):
    """What a wallet's contract says of a signature."""

    YES = auto()
    YES_THEN = auto()
    """At the block that the receipt names, not any more."""
    NO_THEN = auto()
    """Neither now nor at the block that the receipt names."""
    UNKNOWN = auto()


def contract_says(
    chain: Chain, wallet: Address, digest: bytes, signature: bytes, check: ContractCheck
) -> tuple[Said, Block]:
    """What every node lets a wallet's contract say of a signature, and the finalized block.

    Owners change, so a no of today means nothing: the block of the check is asked then.

    Raises:
        ChainTrouble: a node gives no answer, or two disagree.
    """
    data = confirmation_call(digest, unwrapped(signature))
    views = chain.views()
    said = {_contract_says(view, wallet, data, check) for view in views}
    block = min((view.block for view in views), key=lambda each: each.number)
    if len(said) == 1:
        return said.pop(), block
    if Said.NO_THEN in said and said & {Said.YES, Said.YES_THEN}:
        raise ChainTrouble("the nodes disagree about what the wallet's contract says")
    return Said.UNKNOWN, block


def _contract_says(view: View, wallet: Address, data: bytes, check: ContractCheck) -> Said:
    if not view.code(wallet):
        return Said.UNKNOWN
    if _answer(view, wallet, data) == CONFIRMED:
        return Said.YES
    if check.block_number > view.block.number:
        return Said.UNKNOWN
    if view.hash_at(check.block_number) != check.block_hash:
        return Said.UNKNOWN  # the gateway looked at a block that was not to stay
    then = _answer(view, wallet, data, at=check.block_hash)
    if then == CONFIRMED:
        return Said.YES_THEN
    return Said.NO_THEN if then else Said.UNKNOWN


def _answer(view: View, wallet: Address, data: bytes, *, at: bytes | None = None) -> bytes:
    """The first word of the answer; empty when there is none, as when the contract reverts."""
    try:
        answer = view.call(wallet, data, at=at)
    except ChainTrouble:
        return b""
    return answer[:_WORD] if len(answer) >= _WORD else b""


def confirmation_call(digest: bytes, signature: bytes) -> bytes:
    """The call `isValidSignature(digest, signature)` of ERC-1271."""
    padded = signature + bytes(-len(signature) % _WORD)
    lengths = (2 * _WORD).to_bytes(_WORD), len(signature).to_bytes(_WORD)
    return IS_VALID_SIGNATURE + digest + lengths[0] + lengths[1] + padded


def unwrapped(signature: bytes) -> bytes:
    """The signature for the wallet once it is there: of ERC-6492's (factory, call, signature).

    A wrapping of another form is left as it is; no contract confirms it.
    """
    if not signature.endswith(WRAPPED):
        return signature
    body = signature[: -len(WRAPPED)]
    start = int.from_bytes(body[2 * _WORD : 3 * _WORD]) + _WORD
    end = start + int.from_bytes(body[start - _WORD : start])
    return body[start:end] if 3 * _WORD < start <= end <= len(body) else signature


def _shown(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"unix second {seconds}"
