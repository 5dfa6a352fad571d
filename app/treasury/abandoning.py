"""Giving up on a transaction that can move no more, so that what it was for is sent anew.

Nothing can be paid twice by this: the contracts use each withdrawal, payout, refund and credit
once, a commitment is cumulative, an anchor must grow. What must not happen is a hole in the nonces
of a key that still sends, for everything behind it would hang.
"""

from collections.abc import Collection

from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.treasury.errors import FinalBlockUnknown, KeyStillSends
from app.treasury.transaction import StoredTransaction
from app.treasury.transaction_repository import TransactionRepository
from ledger.encoding import Address


class Abandoning:
    """An operator's last resort, with the database as role `offpeak_treasury`."""

    def __init__(self, database: Database, rpc: ChainRpc, *, chain_id: int) -> None:
        self._database = database
        self._rpc = rpc
        self._chain_id = chain_id

    async def open_ones(self) -> list[StoredTransaction]:
        """Return the transactions that have not ended, oldest first."""
        async with self._database.transaction() as tx:
            return await TransactionRepository(tx, chain_id=self._chain_id).open_ones()

    async def of_key(self, gone: Address, *, sending: Collection[Address], because: str) -> int:
        """Give up on everything of a key that sends no more; return how many.

        Args:
            gone: The key that was replaced.
            sending: The keys that the workers have now.
            because: Why; stored.

        Raises:
            KeyStillSends: it is one of those that send.
        """
        if gone in sending:
            raise KeyStillSends(gone)
        return await self._abandon(
            [tx for tx in await self.open_ones() if tx.sender == gone], because
        )

    async def stuck(self, *, because: str) -> int:
        """Give up on those whose nonce a stranger used for good; return how many.

        Raises:
            FinalBlockUnknown, RpcUnavailable: nothing is known.
        """
        final = await self._rpc.block("finalized")
        if final is None:
            raise FinalBlockUnknown
        found = []
        for tx in await self.open_ones():
            if tx.nonce is None or tx.mined is not None:
                continue
            used = await self._rpc.transaction_count(tx.sender, final.hash)
            receipts = [await self._rpc.receipt(attempt.hash) for attempt in tx.attempts]
            if used > tx.nonce and not any(receipts):
                found.append(tx)
        return await self._abandon(found, because)

    async def _abandon(self, found: list[StoredTransaction], because: str) -> int:
        count = 0
        for each in found:
            async with self._database.transaction() as tx:
                stored = TransactionRepository(tx, chain_id=self._chain_id)
                count += await stored.abandon(each.id, because)
        return count
