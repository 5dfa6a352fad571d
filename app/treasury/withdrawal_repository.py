"""Queries on withdrawals, and the functions that set money aside for them and give it back."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import and_, exists, func, or_, select, text, true
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import chain_attempt, chain_transaction, withdrawal
from app.treasury.transaction import Purpose, TransactionState
from app.treasury.withdrawal import Relay, StoredWithdrawal, ToRelay, WithdrawalState
from ledger.authorization import Withdrawal
from ledger.encoding import Address
from ledger.money import MAX_NANO, NANO_PER_BASE_UNIT, Nano

REQUEST = text(
    "SELECT r.code, r.id, r.available, r.held FROM offpeak.request_withdrawal("
    ":id, :digest, :payer, :asset, :amount, :max_fee, :fee, :nonce, :deadline, :message,"
    " :signature) r"
)
FAIL = text("SELECT offpeak.fail_withdrawal(:id, :reason, :block)")
OPEN = ("queued", "signed", "mined")
RELAYS_SHOWN = 10
REVERTS_A_DAY = 4
"""So often a wallet's transactions may revert in 24 hours: each costs our gas and no fee."""

w, t, a = withdrawal.c, chain_transaction.c, chain_attempt.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A checked withdrawal, ready to be booked."""

    id: UUID
    digest: bytes
    message: Withdrawal
    signature: bytes
    fee: int
    """Base units."""
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the database said: its code, and the wallet's money in nano."""

    code: str
    id: UUID | None
    available: Nano
    held: Nano


class WithdrawalRepository:
    """Reads and moves withdrawals inside one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def now(self) -> datetime:
        """Return the time by the database's clock."""
        found = await self._tx.scalar(select(func.clock_timestamp()))
        assert isinstance(found, datetime)
        return found

    async def request(self, request: Request, *, asset: Address) -> Outcome:
        """Set the amount aside, once per signed message."""
        message = request.message
        given = {
            "id": request.id,
            "digest": request.digest,
            "payer": message.payer,
            "asset": asset,
            "amount": message.amount,
            "max_fee": min(message.max_fee, MAX_NANO // NANO_PER_BASE_UNIT),
            "fee": request.fee,
            "nonce": message.nonce,
            "deadline": request.deadline,
            "message": message.canonical(),
            "signature": request.signature,
        }
        row = (await self._tx.execute(REQUEST, given)).one()
        return Outcome(row.code, row.id, Nano(row.available), Nano(row.held))

    async def by_digest(self, digest: bytes) -> StoredWithdrawal | None:
        """Return the withdrawal of a signed message."""
        return await self._one(w.digest == digest)

    async def of_wallet(self, withdrawal_id: UUID, account_id: UUID) -> StoredWithdrawal | None:
        """Return a wallet's withdrawal with its transactions."""
        return await self._one(w.id == withdrawal_id, w.account_id == account_id)

    async def page(
        self, account_id: UUID, *, before: UUID | None, limit: int
    ) -> list[StoredWithdrawal]:
        """Return a wallet's withdrawals, newest first, older than `before`."""
        query = select(withdrawal).where(w.account_id == account_id)
        if before is not None:
            query = query.where(w.id < before)
        rows = (await self._tx.execute(query.order_by(w.id.desc()).limit(limit))).all()
        relays = await self._relays([row.id for row in rows])
        return [_stored(row, relays.get(row.id, [])) for row in rows]

    async def to_relay(self, *, limit: int) -> list[ToRelay]:
        """Return pending ones in time without a transaction that is open or done.

        Those that never reverted come first, then by age. Those of a wallet whose transactions
        reverted too often are left out: its contract may agree when it is asked, and not then.
        """
        mine = and_(t.purpose == Purpose.WITHDRAWAL.value, t.subject == w.id)
        taken = exists().where(mine, t.state.in_((*OPEN, "done")))
        reverts = (
            select(func.count().label("count"), func.max(t.ended_at).label("at"))
            .where(mine, t.state == "reverted")
            .lateral()
        )
        other, sent = withdrawal.alias("other").c, chain_transaction.alias("sent").c
        of_wallet = (
            select(func.count())
            .where(
                other.account_id == w.account_id,
                sent.subject == other.id,
                sent.purpose == Purpose.WITHDRAWAL.value,
                sent.state == "reverted",
                sent.ended_at > func.clock_timestamp() - timedelta(hours=24),
            )
            .scalar_subquery()
        )
        query = (
            select(withdrawal, reverts.c["count"].label("reverted"), reverts.c["at"].label("last"))
            .join(reverts, true())
            .where(w.state == "pending", w.deadline > func.clock_timestamp(), ~taken)
            .where(of_wallet < REVERTS_A_DAY)
            .order_by(reverts.c["count"], w.id)
            .limit(limit)
        )
        rows = (await self._tx.execute(query)).all()
        return [
            ToRelay(withdrawal=_stored(row, []), reverted=row.reverted, reverted_at=row.last)
            for row in rows
        ]

    async def overdue(self, *, before: datetime, limit: int) -> list[StoredWithdrawal]:
        """Return pending ones whose deadline lies before a time, the longest overdue first."""
        query = (
            select(withdrawal)
            .where(w.state == "pending", w.deadline < before)
            .order_by(w.deadline, w.id)
            .limit(limit)
        )
        return [_stored(row, []) for row in await self._tx.execute(query)]

    async def unwanted(self, *, limit: int) -> list[UUID]:
        """Return queued transactions whose withdrawal has ended or cannot be paid in time."""
        query = (
            select(t.id)
            .join(withdrawal, w.id == t.subject)
            .where(
                t.purpose == Purpose.WITHDRAWAL.value,
                t.state == "queued",
                or_(w.state != "pending", w.deadline < func.clock_timestamp()),
            )
            .limit(limit)
        )
        return list(await self._tx.scalars(query))

    async def fail(self, withdrawal_id: UUID, *, reason: str, block: bytes) -> str:
        """Give a withdrawal's money back; the caller has the proof. Returns the code."""
        given = {"id": withdrawal_id, "reason": reason, "block": block}
        return str(await self._tx.scalar(FAIL, given))

    async def _one(self, *conditions: Any) -> StoredWithdrawal | None:
        row = (await self._tx.execute(select(withdrawal).where(*conditions))).one_or_none()
        if row is None:
            return None
        relays = await self._relays([row.id])
        return _stored(row, relays.get(row.id, []))

    async def _relays(self, ids: list[UUID]) -> dict[UUID, list[Relay]]:
        """Return the transactions of withdrawals, oldest first."""
        latest = (
            select(a.hash)
            .where(a.transaction_id == t.id)
            .order_by(a.created_at.desc(), a.max_fee.desc())
            .limit(1)
            .scalar_subquery()
        )
        query = (
            select(t.subject, t.state, t.mined_number, t.last_error)
            .add_columns(func.coalesce(t.mined_hash, latest).label("hash"))
            .where(t.purpose == Purpose.WITHDRAWAL.value, t.subject.in_(ids))
            .order_by(t.subject, t.id)
        )
        found: dict[UUID, list[Relay]] = {}
        for row in await self._tx.execute(query) if ids else ():
            relay = Relay(
                state=TransactionState(row.state),
                hash=None if row.hash is None else bytes(row.hash),
                block_number=row.mined_number,
                last_error=row.last_error,
            )
            found.setdefault(row.subject, []).append(relay)
        return {subject: relays[-RELAYS_SHOWN:] for subject, relays in found.items()}


def _stored(row: Any, relays: list[Relay]) -> StoredWithdrawal:
    return StoredWithdrawal(
        id=row.id,
        payer=Address(row.payer),
        digest=bytes(row.digest),
        amount=Nano(row.amount),
        fee=Nano(row.fee),
        deadline=row.deadline,
        message=bytes(row.message),
        signature=bytes(row.signature),
        state=WithdrawalState(row.state),
        requested_at=row.requested_at,
        ended_at=row.ended_at,
        reason=row.reason,
        relays=relays,
    )
