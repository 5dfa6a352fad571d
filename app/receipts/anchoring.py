"""Anchoring: on its interval the latest checkpoint's root goes to the receipt anchor on chain.

One transaction is on the way at a time, and the next is planned when its event is booked. The
contract takes a root only with the proof that the log has grown from its own, so what is sent
twice, late or against a lying node is refused there and anchors nothing wrong.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from app.chain.calls import publish
from app.chain.contracts import AnchorContract
from app.chain.errors import RpcUnavailable
from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.kit.ids import IdSource
from app.receipts.anchor_repository import AnchorRepository
from app.receipts.errors import AnchorContradicts
from app.receipts.log_repository import CheckpointRow, LogRepository
from app.receipts.proofs import hashes_of
from app.treasury.transaction import Purpose
from app.treasury.transaction_repository import Order, TransactionRepository
from ledger.encoding import Address, Domain
from ledger.merkle import TreeHead, consistency_ranges, verify_consistency

LOCK: Final = "offpeak.anchoring:"
REFUSED_TRIES: Final = 3
"""How often a queued anchor may be found to revert before another is made in its place."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchoringTerms:
    """What is anchored where, by whom, and how often.

    `domain` is that of usage records: the chain, and the receipt anchor on it.
    """

    domain: Domain
    sender: Address
    interval: timedelta
    """Between two anchors at least; zero: every checkpoint that is there when the last is done."""


@dataclass(frozen=True, slots=True)
class Anchoring:
    """Plans what is due and queues it for the anchor key's sender; any number may run."""

    database: Database
    """As role `offpeak_treasury`."""
    rpc: ChainRpc
    terms: AnchoringTerms
    ids: IdSource

    async def run_once(self) -> bool:
        """Queue the next anchor if one is due; return whether one was queued.

        Raises:
            RpcUnavailable: no node says what is anchored now.
            AnchorContradicts: the contract holds what our log never was; nothing is sent.
            BadProof: the stored log does not grow as its checkpoints say.
        """
        chain_id = self.terms.domain.chain_id
        async with self.database.locked(f"{LOCK}{chain_id}") as connection:
            if connection is None:
                return False
            stored = TransactionRepository(connection, chain_id=chain_id)
            await stored.cancel_queued(Purpose.ANCHOR, refused=REFUSED_TRIES)
            settled, last = await stored.is_settled(Purpose.ANCHOR)
            if not settled:
                return False
            if last is not None and await stored.now() < last + self.terms.interval:
                return False
            repository = LogRepository(connection)
            latest = await repository.checkpoint()
            anchored = await self._anchored(repository, AnchorRepository(connection))
            if latest is None or latest.size == anchored.size:
                return False
            order = await self._order(repository, anchored, latest)
            queued = await stored.enqueue(self.ids.new(), order, sender=self.terms.sender)
        if queued:
            log.info("a checkpoint is anchored", size=latest.size, previous=anchored.size)
        return queued

    async def _anchored(self, repository: LogRepository, anchors: AnchorRepository) -> TreeHead:
        """Return what the contract holds; it is a checkpoint of ours, or nothing yet."""
        contract = AnchorContract(self.rpc, self.terms.domain.verifying_contract)
        block = await self.rpc.block("latest")
        if block is None:
            raise RpcUnavailable("eth_getBlockByNumber", ["no latest block"])
        size = await contract.size(block.hash)
        known = await anchors.latest(self.terms.domain)
        if known is not None and size < known.size:
            reason = f"shows {size} entries anchored, {known.size} are final"
            raise RpcUnavailable("size", [reason])
        if size == 0:
            return TreeHead(0, bytes(32))
        root = await contract.root(block.hash)
        ours = await repository.checkpoint(size)
        if ours is None or ours.root != root:
            raise AnchorContradicts(size=size, root=root)
        return TreeHead(size, root)

    async def _order(
        self, repository: LogRepository, anchored: TreeHead, latest: CheckpointRow
    ) -> Order:
        proof: tuple[bytes, ...] = ()
        if anchored.size:
            proof = await hashes_of(repository, consistency_ranges(anchored.size, latest.size))
            verify_consistency(anchored, TreeHead(latest.size, latest.root), proof)
        return Order(
            purpose=Purpose.ANCHOR,
            subject=UUID(int=latest.size),
            to=self.terms.domain.verifying_contract,
            data=publish(latest.size, latest.root, proof),
        )
