"""Reads `status.py`'s figures: the books in one snapshot, the chain at one block."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from app.chain.blocks import Block, BlockId
from app.chain.contracts import TokenContract, TreasuryContract
from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.treasury.errors import FinalBlockUnknown
from app.treasury.status import (
    BookFigures,
    ChainFigures,
    Kind,
    Pending,
    SenderState,
    TreasuryStatus,
)
from app.treasury.status_repository import Scanned, StatusRepository, StoredSender
from ledger.encoding import Address

USUAL_GAS: Final = 250_000
"""What a queued transaction of ours takes at most, but for large batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTerms:
    """What is compared. `keys` are the addresses that send now; `gas_low` is wei."""

    chain_id: int
    treasury: Address
    token: Address
    keys: Sequence[Address] = ()
    gas_low: int = 0
    intervals: Mapping[Kind, timedelta] = field(default_factory=dict)


class StatusReader:
    """Compares chain and books; changes nothing."""

    def __init__(self, database: Database, rpc: ChainRpc, terms: StatusTerms) -> None:
        self._database = database
        self._rpc = rpc
        self._terms = terms

    async def read(self) -> TreasuryStatus:
        """Return the status at the last scanned block.

        Raises:
            RpcUnavailable: nobody says, or the state of that block is not kept any more.
            FinalBlockUnknown: no node knows a final block. DatabaseUnavailable
        """
        head = await self._rpc.block("finalized")
        if head is None:
            raise FinalBlockUnknown
        scanned, books, stored = await self._books(head)
        chain = await self._chain(scanned.block) if scanned.block else None
        return TreasuryStatus(
            as_of=scanned.now,
            chain_id=self._terms.chain_id,
            head=BlockId(number=head.number, hash=head.hash),
            chain=chain,
            books=books,
            senders=await self._senders(stored),
            intervals=self._terms.intervals,
        )

    async def _books(self, head: Block) -> tuple[Scanned, BookFigures, list[StoredSender]]:
        async with self._database.snapshot() as view:
            repository = StatusRepository(
                view, chain_id=self._terms.chain_id, asset=self._terms.token
            )
            scanned = await repository.scanned()
            reached = scanned.block.number if scanned.block else -1
            behind = max(head.number - reached, 0)
            since = scanned.moved_at if behind else None
            scan = Pending(kind=Kind.SCAN, count=behind, since=since)
            return scanned, await repository.books(reached, scan=scan), await repository.senders()

    async def _chain(self, block: BlockId) -> ChainFigures:
        treasury = TreasuryContract(self._rpc, self._terms.treasury)
        token = TokenContract(self._rpc, self._terms.token)
        tokens, liability, earned, unaccounted, events, paused = await asyncio.gather(
            token.balance_of(self._terms.treasury, block.hash),
            treasury.total_liability(block.hash),
            treasury.earned(block.hash),
            treasury.unaccounted(block.hash),
            treasury.event_count(block.hash),
            treasury.paused("latest"),
        )
        return ChainFigures(
            block=block,
            tokens=tokens,
            liability=liability,
            earned=earned,
            unaccounted=unaccounted,
            events=events,
            paused=paused,
        )

    async def _senders(self, stored: list[StoredSender]) -> list[SenderState]:
        known = {each.address: each for each in stored}
        fees = await self._rpc.fees()
        usual = USUAL_GAS * (2 * fees.base + fees.priority)
        found = []
        for address in dict.fromkeys([*self._terms.keys, *known]):
            sender = known.get(address)
            needed = sender.promised_wei + sender.queued * usual if sender else 0
            sends = address in self._terms.keys or (sender is not None and sender.open > 0)
            found.append(
                SenderState(
                    address=address,
                    open=sender.open if sender else 0,
                    next_nonce=sender.next_nonce if sender else None,
                    chain_nonce=await self._rpc.transaction_count(address, "latest"),
                    balance_wei=await self._rpc.balance(address),
                    needed_wei=max(needed, self._terms.gas_low) if sends else 0,
                )
            )
        return found
