"""The one way anything of ours gets on chain: one sender per key, any number of workers.

A round holds the key's lock and writes on the connection that holds it. What is sent was stored
and committed before: first nonce and signed form, then the broadcast. A crash anywhere leaves a
row that says what may have happened, and the next round, anywhere, goes on from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.chain.keys import ChainKey
from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.treasury.errors import WrongSender
from app.treasury.passage import Passage, Round
from app.treasury.sight import look_at_key
from app.treasury.transaction import Purpose, Rules
from app.treasury.transaction_repository import TransactionRepository
from ledger.encoding import Address

QUEUE_LIMIT: Final = 32
"""Most queued transactions that a round tries."""

OPERATOR_PURPOSES: Final = (
    Purpose.WITHDRAWAL,
    Purpose.PAYOUT,
    Purpose.COMMIT,
    Purpose.REFUND,
    Purpose.CREDIT,
)
"""What the operator's key sends."""
ANCHOR_PURPOSES: Final = (Purpose.ANCHOR,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderTerms:
    """What one key sends, on which chain, and how."""

    chain_id: int
    purposes: Sequence[Purpose]
    rules: Rules


class Sender:
    """Sends what is queued for one key and follows it until it is final."""

    def __init__(
        self, database: Database, rpc: ChainRpc, signer: ChainKey, terms: SenderTerms
    ) -> None:
        """Take the database of role `offpeak_treasury`, the chain, and the key."""
        self._database = database
        self._rpc = rpc
        self._signer = signer
        self._terms = terms

    @property
    def address(self) -> Address:
        """The key's address."""
        return self._signer.address

    @property
    def lock(self) -> str:
        """The name of the lock that lets one process send for this key."""
        return f"offpeak.sender:{self._terms.chain_id}:{self.address}"

    async def run_once(self) -> Round:
        """Move every transaction of the key as far as it goes now.

        Raises:
            WrongSender: something waits for another key of the same purpose; nothing is sent.
            RpcUnavailable, FinalBlockUnknown: nothing is known; the next round tries again.
            DatabaseUnavailable: the lock went with its connection; the round stops where it was.
        """
        async with self._database.locked(self.lock) as connection:
            if connection is None:
                return Round(held=False)
            stored = TransactionRepository(connection, chain_id=self._terms.chain_id)
            return await self._round(stored)

    async def _round(self, stored: TransactionRepository) -> Round:
        strangers = await stored.strangers(self._terms.purposes, sender=self.address)
        if strangers:
            raise WrongSender(count=strangers, sender=self.address)
        queued = await stored.queued(self.address, limit=QUEUE_LIMIT)
        waiting = await stored.on_the_way(self.address)
        if not queued and not waiting:
            return Round()
        key = await look_at_key(self._rpc, self.address, fee_cap=self._terms.rules.fee_cap)
        passage = Passage(
            rpc=self._rpc,
            chain_id=self._terms.chain_id,
            signer=self._signer,
            stored=stored,
            rules=self._terms.rules,
            key=key,
        )
        await passage.follow(waiting)
        await passage.send(queued)
        return passage.work
