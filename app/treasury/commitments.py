"""Telling the chain what wallets spent, so that an exit without us leaves what is really left."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from app.chain.calls import commit_spend, refund
from app.db.engine import Database
from app.kit.ids import IdSource
from app.treasury.commitment_plan import BATCH_LIMIT, CommitmentPlan, plan_commitments
from app.treasury.commitment_repository import CommitmentRepository
from app.treasury.transaction import Purpose
from app.treasury.transaction_repository import Order, TransactionRepository
from ledger.encoding import Address

LOCK: Final = "offpeak.commitments:"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentTerms:
    """Which contract is told, by whom, and how often."""

    chain_id: int
    treasury: Address
    token: Address
    operator: Address
    interval: timedelta


@dataclass(slots=True)
class CommitmentLoop:
    """Plans what is due and queues it for the operator's sender; any number may run."""

    database: Database
    """As role `offpeak_treasury`."""
    terms: CommitmentTerms
    ids: IdSource
    _next: datetime | None = field(default=None, init=False)
    """When this process plans again; reading all spending is not for every round."""

    async def run_once(self) -> int:
        """Queue the commitment and the refunds that are due; return how many transactions.

        One commitment is on the way at a time, and the next is planned when its events are
        booked. Where more wallets wait than one batch holds, the rest does not wait an interval.
        """
        terms = self.terms
        async with self.database.locked(f"{LOCK}{terms.chain_id}") as connection:
            if connection is None:
                return 0
            spends = CommitmentRepository(connection, chain_id=terms.chain_id)
            stored = TransactionRepository(connection, chain_id=terms.chain_id)
            settled, last = await stored.is_settled(Purpose.COMMIT)
            now = await stored.now()
            if self._next is None:
                self._next = now if last is None else last + terms.interval
            if not settled or now < self._next:
                return 0
            wallets = await spends.differences(asset=terms.token)
            plan = plan_commitments(wallets, treasury=terms.treasury)
            self._next = now if len(plan.payers) == BATCH_LIMIT else now + terms.interval
            return await self._queue(plan, spends, stored)

    async def _queue(
        self, plan: CommitmentPlan, spends: CommitmentRepository, stored: TransactionRepository
    ) -> int:
        orders = []
        if plan.payers:
            batch = self.ids.new()
            pairs = list(zip(plan.payers, plan.spent, strict=True))
            orders.append(
                Order(
                    purpose=Purpose.COMMIT,
                    subject=batch,
                    to=self.terms.treasury,
                    data=commit_spend(batch.int, pairs),
                )
            )
        sent = await spends.busy_refunds([each.subject for each in plan.refunds])
        orders += [
            Order(
                purpose=Purpose.REFUND,
                subject=each.subject,
                to=self.terms.treasury,
                data=refund(each.payer, each.amount, each.id),
            )
            for each in plan.refunds
            if each.subject not in sent
        ]
        queued = 0
        for order in orders:
            queued += await stored.enqueue(self.ids.new(), order, sender=self.terms.operator)
        if queued:
            log.info("spending is committed", wallets=len(plan.payers), refunds=len(plan.refunds))
        return queued
