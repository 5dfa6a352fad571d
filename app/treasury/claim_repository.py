"""Queries on plain transfers and their claims, and the function that stores a claim."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, exists, func, select, text, true
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import chain_event, chain_transaction, suspense_claim
from app.treasury.claim import PlainTransfer, SignedClaim, ToCredit, TransferState
from app.treasury.events import EventKind
from app.treasury.fee import nano
from app.treasury.transaction import Purpose
from ledger.encoding import Address

REQUEST = text(
    "SELECT r.code FROM offpeak.request_claim(:id, :event, :payer, :digest, :message, :signature) r"
)
MAX_LOG_INDEX = 2**31 - 1
"""The column's most; a message may name up to 2^64 - 1."""
TAKEN = ("queued", "signed", "mined", "done")

e, c, t = chain_event.c, suspense_claim.c, chain_transaction.c


class ClaimRepository:
    """Reads and requests claims inside one transaction."""

    def __init__(self, tx: AsyncConnection, *, chain_id: int) -> None:
        self._tx = tx
        self._chain_id = chain_id

    async def now(self) -> datetime:
        """Return the time by the database's clock."""
        found = await self._tx.scalar(select(func.clock_timestamp()))
        assert isinstance(found, datetime)
        return found

    async def find(self, transaction: bytes, log_index: int) -> PlainTransfer | None:
        """Return the plain transfer of a log; None where the chain shows none now."""
        if log_index > MAX_LOG_INDEX:
            return None
        query = _transfers().where(
            e.chain_id == self._chain_id, e.tx_hash == transaction, e.log_index == log_index
        )
        row = (await self._tx.execute(query.order_by(e.seen_at.desc()).limit(1))).one_or_none()
        return None if row is None else _transfer(row)

    async def of_wallet(self, payer: Address, *, limit: int) -> list[PlainTransfer]:
        """Return what a wallet sent and was not credited, oldest first."""
        query = (
            _transfers()
            .where(e.chain_id == self._chain_id, e.payer == payer)
            .where(func.coalesce(c.state, "") != "credited")
            .order_by(e.block_number, e.log_index)
            .limit(limit)
        )
        return [_transfer(row) for row in await self._tx.execute(query)]

    async def request(self, claim: UUID, transfer: PlainTransfer, signed: SignedClaim) -> str:
        """Store a claim, once for each transfer; return the database's code."""
        given = {
            "id": claim,
            "event": transfer.id,
            "payer": signed.message.payer,
            "digest": signed.digest,
            "message": signed.message.canonical(),
            "signature": signed.signature,
        }
        return str(await self._tx.scalar(REQUEST, given))

    async def to_credit(self, *, limit: int) -> list[ToCredit]:
        """Return claims without a transaction that is open or done, oldest first."""
        mine = and_(t.purpose == Purpose.CREDIT.value, t.subject == c.id)
        reverts = (
            select(func.count().label("count"), func.max(t.ended_at).label("at"))
            .where(mine, t.state == "reverted")
            .lateral()
        )
        query = (
            select(c.id, c.payer, e.amount)
            .add_columns(reverts.c["count"].label("reverted"), reverts.c["at"].label("last"))
            .join(chain_event, e.id == c.event_id)
            .join(reverts, true())
            .where(
                e.chain_id == self._chain_id,
                c.state == "requested",
                ~exists().where(mine, t.state.in_(TAKEN)),
            )
            .order_by(c.id)
            .limit(limit)
        )
        return [
            ToCredit(
                claim=row.id,
                payer=Address(row.payer),
                amount=int(row.amount),
                reverted=row.reverted,
                reverted_at=row.last,
            )
            for row in await self._tx.execute(query)
        ]


def _transfers() -> Select[Any]:
    return (
        select(e.id, e.payer, e.amount, e.tx_hash, e.log_index, e.block_number, e.state)
        .add_columns(c.id.label("claim"), c.digest, c.state.label("claim_state"))
        .outerjoin(suspense_claim, c.event_id == e.id)
        .where(e.kind == EventKind.PLAIN_TRANSFER.value, e.state != "orphaned")
    )


def _transfer(row: Any) -> PlainTransfer:
    if row.claim is not None:
        state = TransferState(row.claim_state)
    else:
        state = TransferState.UNCLAIMED if row.state == "booked" else TransferState.NOT_FINAL
    return PlainTransfer(
        id=row.id,
        payer=Address(row.payer),
        amount=nano(int(row.amount)),
        transaction=bytes(row.tx_hash),
        log_index=row.log_index,
        block_number=row.block_number,
        state=state,
        claim=row.claim,
        claim_digest=None if row.digest is None else bytes(row.digest),
    )
