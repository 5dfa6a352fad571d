"""Queries on our transactions on the chain, and the functions that move them on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.chain.blocks import BlockId
from app.chain.fees import Fees
from app.db.tables import chain_attempt, chain_transaction, ledger_halt
from app.treasury.transaction import (
    Attempt,
    Inclusion,
    Purpose,
    StoredTransaction,
    TransactionState,
)
from ledger.encoding import Address

WOULD_REVERT = "would-revert"
"""How the reason of a queued transaction begins whose simulation reverts."""

OPEN_LIMIT = 500
"""Most open transactions that one round looks at."""

ENQUEUE = text(
    "SELECT offpeak.enqueue_transaction(:id, :chain, :sender, :purpose, :subject, :to, :data)"
)
SIGN = text(
    "SELECT offpeak.sign_transaction(:id, :nonce, :hash, :raw, :gas, :max_fee, :priority_fee)"
)
ADD_ATTEMPT = text("SELECT offpeak.add_attempt(:id, :hash, :raw, :max_fee, :priority_fee)")
NOTE_BROADCAST = text("SELECT offpeak.note_broadcast(:hash)")
MINE = text("SELECT offpeak.mine_transaction(:id, :hash, :number, :block)")
UNMINE = text("SELECT offpeak.unmine_transaction(:id)")
FINISH = text("SELECT offpeak.finish_transaction(:id, :state, :error)")
POSTPONE = text("SELECT offpeak.postpone_transaction(:id, :error, :not_before)")
CANCEL = text("SELECT offpeak.cancel_transaction(:id)")
ABANDON = text("SELECT offpeak.abandon_transaction(:id, :because)")
# When the last of a purpose was begun, whether one is open, and whether one that is done has events
# that are not booked: the cursor has not passed its block.
LAST = text(
    "SELECT max(t.created_at) AS at,"
    " coalesce(bool_or(t.state IN ('queued', 'signed', 'mined')), false) AS open,"
    " coalesce(max(t.mined_number) FILTER (WHERE t.state = 'done'), 0)"
    "   > coalesce((SELECT c.number FROM offpeak.chain_cursor c WHERE c.chain_id = :chain), -1)"
    "   AS ahead"
    " FROM offpeak.chain_transaction t WHERE t.chain_id = :chain AND t.purpose = :purpose"
)

t, a = chain_transaction.c, chain_attempt.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A call that is to be sent."""

    purpose: Purpose
    subject: UUID
    to: Address
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A signed form, ready to be stored."""

    hash: bytes
    raw: bytes
    fees: Fees


class TransactionRepository:
    """Reads and moves transactions of one chain; every call may be a transaction of its own."""

    def __init__(self, tx: AsyncConnection, *, chain_id: int) -> None:
        self._tx = tx
        self._chain_id = chain_id

    async def enqueue(self, new_id: UUID, order: Order, *, sender: Address) -> bool:
        """Ask for a transaction; False while one of its purpose and subject is open."""
        given = {
            "id": new_id,
            "chain": self._chain_id,
            "sender": sender,
            "purpose": order.purpose.value,
            "subject": order.subject,
            "to": order.to,
            "data": order.data,
        }
        return await self._code(ENQUEUE, given) == "ok"

    async def on_the_way(self, sender: Address) -> list[StoredTransaction]:
        """Return the sender's signed and mined transactions by nonce."""
        owned = t.state.in_(("signed", "mined"))
        return await self._transactions(owned, t.sender == sender, order=t.nonce, limit=OPEN_LIMIT)

    async def now(self) -> datetime:
        """Return the time by the database's clock."""
        found = await self._tx.scalar(select(func.clock_timestamp()))
        assert isinstance(found, datetime)
        return found

    async def queued(self, sender: Address, *, limit: int) -> list[StoredTransaction]:
        """Return the sender's oldest transactions that may be tried now and own no nonce."""
        due = (t.not_before.is_(None)) | (t.not_before <= func.clock_timestamp())
        return await self._transactions(
            t.state == "queued", t.sender == sender, due, order=t.id, limit=limit
        )

    async def open_ones(self) -> list[StoredTransaction]:
        """Return every transaction that has not ended, of all senders, oldest first."""
        is_open = t.state.in_(("queued", "signed", "mined"))
        return await self._transactions(is_open, order=t.id, limit=OPEN_LIMIT)

    async def strangers(self, purposes: Sequence[Purpose], *, sender: Address) -> int:
        """Return how many open transactions of these purposes belong to another sender."""
        query = select(func.count()).where(
            t.chain_id == self._chain_id,
            t.state.in_(("queued", "signed", "mined")),
            t.purpose.in_([purpose.value for purpose in purposes]),
            t.sender != sender,
        )
        return int(await self._tx.scalar(query) or 0)

    async def last_nonce(self, sender: Address) -> int | None:
        """Return the highest nonce that a transaction of the sender ever owned."""
        query = select(func.max(t.nonce)).where(t.chain_id == self._chain_id, t.sender == sender)
        found = await self._tx.scalar(query)
        return None if found is None else int(found)

    async def sign(self, tx: StoredTransaction, signed: Signed, *, nonce: int, gas: int) -> bool:
        """Give a queued transaction its nonce and first signed form; False when it is not queued.

        Raises:
            IntegrityError: the nonce is owned already.
        """
        given = {"id": tx.id, "nonce": nonce, "gas": gas, **_signed(signed)}
        return await self._code(SIGN, given) == "ok"

    async def add_attempt(self, tx: StoredTransaction, signed: Signed) -> bool:
        """Store a replacement; False when the transaction is not waiting any more."""
        return await self._code(ADD_ATTEMPT, {"id": tx.id, **_signed(signed)}) == "ok"

    async def note_broadcast(self, attempt_hash: bytes) -> None:
        """Note that a node took an attempt."""
        await self._tx.execute(NOTE_BROADCAST, {"hash": attempt_hash})

    async def mine(self, tx: StoredTransaction, inclusion: Inclusion) -> bool:
        """Note the block that holds an attempt."""
        given = {
            "id": tx.id,
            "hash": inclusion.attempt,
            "number": inclusion.block.number,
            "block": inclusion.block.hash,
        }
        return await self._code(MINE, given) == "ok"

    async def unmine(self, tx: StoredTransaction) -> bool:
        """Take back what `mine` noted."""
        return await self._code(UNMINE, {"id": tx.id}) == "ok"

    async def finish(
        self, tx: StoredTransaction, state: TransactionState, error: str | None
    ) -> bool:
        """End a mined transaction as done or reverted."""
        given: dict[str, object] = {"id": tx.id, "state": state.value, "error": error}
        return await self._code(FINISH, given) == "ok"

    async def postpone(self, tx: StoredTransaction, error: str, not_before: datetime) -> None:
        """Note why a transaction does not move; a queued one is left alone until `not_before`."""
        given = {"id": tx.id, "error": error, "not_before": not_before}
        await self._tx.execute(POSTPONE, given)

    async def cancel(self, transaction_id: UUID) -> bool:
        """End a transaction that is still queued."""
        return await self._code(CANCEL, {"id": transaction_id}) == "ok"

    async def abandon(self, transaction_id: UUID, because: str) -> bool:
        """Follow an open transaction no more; False when it has ended."""
        return await self._code(ABANDON, {"id": transaction_id, "because": because}) == "ok"

    async def cancel_queued(self, purpose: Purpose, *, refused: int = 0) -> None:
        """End queued transactions of a purpose; with `refused`, those that reverted so often."""
        query = select(t.id).where(
            t.chain_id == self._chain_id, t.purpose == purpose.value, t.state == "queued"
        )
        if refused:
            query = query.where(t.last_error.like(WOULD_REVERT + "%"), t.tries >= refused)
        for each in list(await self._tx.scalars(query)):
            await self.cancel(each)

    async def is_settled(self, purpose: Purpose) -> tuple[bool, datetime | None]:
        """Return whether no transaction of a purpose is open or unbooked, and the last's time."""
        given = {"chain": self._chain_id, "purpose": purpose.value}
        row = (await self._tx.execute(LAST, given)).one()
        return not row.open and not row.ahead, row.at

    async def is_halted(self) -> bool:
        """Return whether nothing may be paid out until an operator has looked at the books."""
        halted = select(ledger_halt.c.id).where(ledger_halt.c.cleared_at.is_(None)).limit(1)
        return await self._tx.scalar(halted) is not None

    async def _code(self, call: Any, given: dict[str, object]) -> str:
        return str(await self._tx.scalar(call, given))

    async def _transactions(
        self, *conditions: Any, order: Any, limit: int
    ) -> list[StoredTransaction]:
        query = (
            select(chain_transaction)
            .where(t.chain_id == self._chain_id, *conditions)
            .order_by(order)
            .limit(limit)
        )
        rows = (await self._tx.execute(query)).all()
        attempts: dict[UUID, list[Attempt]] = {}
        of_these = a.transaction_id.in_([row.id for row in rows])
        if rows:
            by_age = select(chain_attempt).where(of_these).order_by(a.created_at, a.max_fee)
            for row in await self._tx.execute(by_age):
                attempts.setdefault(row.transaction_id, []).append(_attempt(row))
        return [_transaction(row, attempts.get(row.id, [])) for row in rows]


def _attempt(row: Any) -> Attempt:
    return Attempt(
        hash=bytes(row.hash),
        raw=bytes(row.raw),
        fees=Fees(int(row.max_fee), int(row.priority_fee)),
        created_at=row.created_at,
        broadcast_at=row.broadcast_at,
    )


def _transaction(row: Any, attempts: list[Attempt]) -> StoredTransaction:
    mined = None
    if row.mined_number is not None:
        mined = BlockId(row.mined_number, bytes(row.mined_block))
    return StoredTransaction(
        id=row.id,
        sender=Address(row.sender),
        purpose=Purpose(row.purpose),
        subject=row.subject,
        to=Address(row.to_address),
        data=bytes(row.data),
        state=TransactionState(row.state),
        nonce=row.nonce,
        gas=row.gas,
        attempts=attempts,
        mined=mined,
        mined_hash=None if row.mined_hash is None else bytes(row.mined_hash),
        tries=row.tries,
        last_error=row.last_error,
        created_at=row.created_at,
    )


def _signed(signed: Signed) -> dict[str, object]:
    return {
        "hash": signed.hash,
        "raw": signed.raw,
        "max_fee": signed.fees.max_fee,
        "priority_fee": signed.fees.priority_fee,
    }
