"""Paying suppliers: a statement first, then what was asked for, batched, from earned funds."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from app.chain.calls import payout
from app.chain.contracts import TreasuryContract
from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.kit.ids import IdSource
from app.treasury.errors import PayoutRefused
from app.treasury.payout_plan import SupplierStatement, payout_batch
from app.treasury.payout_repository import PayoutRepository
from app.treasury.transaction import Purpose
from app.treasury.transaction_repository import Order, TransactionRepository
from ledger.encoding import Address, uuid_bytes32

LOCK: Final = "offpeak.payouts:"

REFUSED_TRIES: Final = 5
"""How often a queued payout may be found to revert before its batch is made anew."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PayoutService:
    """The operator's side: who gets what, and asking for it."""

    database: Database
    """As role `offpeak_operator`."""
    asset: Address
    ids: IdSource

    async def statements(self, supplier: UUID | None = None) -> list[SupplierStatement]:
        """Return the statements of all suppliers, or of one. Changes nothing."""
        async with self.database.transaction() as tx:
            return await PayoutRepository(tx).statements(asset=self.asset, supplier=supplier)

    async def request(self, statement: SupplierStatement) -> UUID:
        """Set aside what the statement says is to be paid, and return the payout's id.

        Raises:
            PayoutRefused: it was earned less meanwhile, the address changed, or books are halted.
        """
        new_id = self.ids.new()
        async with self.database.transaction() as tx:
            code = await PayoutRepository(tx).request(new_id, statement, asset=self.asset)
        if code != "ok":
            raise PayoutRefused(reason=code)
        return new_id


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutTerms:
    """From which contract suppliers are paid, in what, and by whom."""

    chain_id: int
    treasury: Address
    token: Address
    operator: Address


@dataclass(frozen=True, slots=True)
class PayoutLoop:
    """Puts pending payouts into transactions for the operator's sender; any number may run."""

    database: Database
    """As role `offpeak_treasury`."""
    rpc: ChainRpc
    terms: PayoutTerms
    ids: IdSource

    async def run_once(self) -> int:
        """Queue one transaction for what is pending and fits; return how many payouts are in it.

        One is on the way at a time, and the next is made when the events of the last are booked,
        so that no payout is in two. One that waits queued, because it would revert, is made anew:
        what it holds may have been paid, or the funds be others. Nothing is begun while the
        ledger is halted.

        Raises:
            RpcUnavailable, RpcRefused, MalformedAnswer: nobody says what may be paid out.
        """
        terms = self.terms
        async with self.database.locked(f"{LOCK}{terms.chain_id}") as connection:
            if connection is None:
                return 0
            stored = TransactionRepository(connection, chain_id=terms.chain_id)
            if await stored.is_halted():
                await stored.cancel_queued(Purpose.PAYOUT)
                return 0
            await stored.cancel_queued(Purpose.PAYOUT, refused=REFUSED_TRIES)
            settled, _ = await stored.is_settled(Purpose.PAYOUT)
            if not settled:
                return 0
            pending = await PayoutRepository(connection).pending(asset=terms.token)
            if not pending:
                return 0
            chosen = payout_batch(pending, funds=await self._funds(), now=await stored.now())
            if not chosen:
                log.error("payouts wait for earned funds or for the day's limit")
                return 0
            items = [(uuid_bytes32(each.id), each.recipient, each.amount) for each in chosen]
            order = Order(
                purpose=Purpose.PAYOUT,
                subject=self.ids.new(),
                to=terms.treasury,
                data=payout(items),
            )
            await stored.enqueue(self.ids.new(), order, sender=terms.operator)
            return len(chosen)

    async def _funds(self) -> int:
        """Return what may be paid out now, in base units: earned, and within the day's limit."""
        contract = TreasuryContract(self.rpc, self.terms.treasury)
        if await contract.paused("latest"):
            return 0
        earned = await contract.earned("latest")
        return min(earned, await contract.payout_room("latest"))
