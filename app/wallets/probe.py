"""Asks the chain whether a wallet's contract confirms a signature (ERC-1271, ERC-6492).

One `eth_call` without a recipient runs `contracts/src/SignatureProbe.sol` as creation code:
whatever the wallet does (revert, burn its gas, return garbage or a megabyte), the answer is one
byte. Nothing is ever sent. Each read is pinned to the hash of a latest block, so a revoked owner
counts no more from that block on.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.chain.blocks import Block
from app.chain.errors import ChainError, RpcRefused
from app.chain.rpc import CallRequest, ChainRpc
from app.kit.clock import unix_seconds
from ledger.encoding import Address, address_word
from ledger.onchain import ContractCheck, ContractMethod

PROBE_GAS: Final = 3_000_000
"""What a call may use; passkey wallets in Solidity need about 400,000."""
HEADS_APART: Final = 120
"""Seconds that a latest block may be old, or behind another's: a stuck node says no yes."""
ENOUGH: Final = 2
"""Endpoints that must confirm, where so many are set: one that lies gives nobody's money away."""
WRAPPED: Final = bytes.fromhex("6492" * 16)
_WORD: Final = 32
_YES, _NO = b"\x01", b"\x00"


class Unanswered(Exception):
    """The chain gave no answer that counts; the text names no URL."""


@dataclass(frozen=True, slots=True)
class Question:
    """A signature that a contract may confirm."""

    signer: Address
    digest: bytes
    signature: bytes

    def call(self, probe: bytes) -> CallRequest:
        """The call that runs the probe: its code, then its arguments as the ABI writes them."""
        padded = self.signature + bytes(-len(self.signature) % _WORD)
        offset, length = (3 * _WORD).to_bytes(_WORD), len(self.signature).to_bytes(_WORD)
        given = address_word(self.signer) + self.digest + offset + length + padded
        return CallRequest(to=None, data=probe + given, gas=PROBE_GAS)


@dataclass(frozen=True, slots=True)
class Said:
    """What one endpoint says at its latest block; `check` None is a no."""

    head: Block
    check: ContractCheck | None


class ContractProbe:
    """Asks the endpoints of one chain."""

    def __init__(self, rpc: ChainRpc, code: bytes, *, max_age: int | None = HEADS_APART) -> None:
        """Take the chain and the probe's creation code.

        Args:
            rpc: With one endpoint its word counts; with more, `ENOUGH` must confirm.
            code: `SignatureProbe`'s.
            max_age: Seconds that a latest block may be old; None on a development chain.
        """
        self._endpoints = rpc.by_url()
        self._code = code
        self._max_age = max_age

    async def ask(self, question: Question, *, now: datetime) -> ContractCheck | None:
        """Return where the signer's contract confirmed it, None where it does not.

        Raises:
            Unanswered: not enough endpoints answered in time, or they contradict each other.
        """
        asked = (self._one(each, question, unix_seconds(now)) for each in self._endpoints)
        answers = await asyncio.gather(*asked)
        said = [each for each in answers if isinstance(each, Said)]
        if not said:
            raise Unanswered("; ".join(str(each) for each in answers))
        confirmed = [each for each in said if each.check is not None]
        if not confirmed:
            return None
        heads = [each.head.timestamp for each in said]
        if len(confirmed) < len(said) or max(heads) - min(heads) > HEADS_APART:
            raise Unanswered("the endpoints contradict each other")
        if len(confirmed) < min(ENOUGH, len(self._endpoints)):
            raise Unanswered("only one endpoint answers")
        return min(confirmed, key=lambda each: each.head.number).check

    async def _one(self, rpc: ChainRpc, question: Question, now: int) -> Said | str:
        """Return what an endpoint says, or why that is nothing."""
        try:
            head = await rpc.block("latest")
            if head is None:
                return f"{rpc.label}: no latest block"
            if self._max_age is not None and head.timestamp < now - self._max_age:
                return f"{rpc.label}: stands at {head.timestamp}, unix seconds"
            return await self._at(rpc, question, head)
        except ChainError as error:
            return str(error)

    async def _at(self, rpc: ChainRpc, question: Question, head: Block) -> Said | str:
        try:
            answer = await rpc.call(question.call(self._code), head.hash)
        except RpcRefused:  # a wrapping that cannot be read
            answer = _NO
        if answer == _NO:
            return Said(head, None)
        if answer != _YES:
            return f"{rpc.label}: does not run the probe"
        method = ContractMethod.DEPLOYED
        if question.signature.endswith(WRAPPED) and not await rpc.code(question.signer, head.hash):
            method = ContractMethod.COUNTERFACTUAL
        return Said(head, ContractCheck(method, head.number, head.hash))
