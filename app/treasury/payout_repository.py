"""Queries on what suppliers earned and got, and the function that sets a payout aside."""

from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.treasury.fee import base_units_down
from app.treasury.payout_plan import PendingPayout, SupplierStatement
from ledger.encoding import Address
from ledger.money import Nano

REQUEST = text("SELECT offpeak.request_payout(:id, :supplier, :address, :asset, :amount)")
# The account holds what is owed: a payout takes its amount from it when it is asked for.
STATEMENTS = text(
    "SELECT s.id, s.name, s.payout_address,"
    "   offpeak.house_balance_of(a.id) AS owed,"
    "   coalesce(p.paid, 0) AS paid, coalesce(p.pending, 0) AS pending"
    "  FROM offpeak.supplier s"
    "  LEFT JOIN offpeak.account a"
    "    ON a.kind = 'supplier' AND a.owner = s.id::text AND a.asset = :asset"
    "  LEFT JOIN LATERAL ("
    "    SELECT sum(x.amount) FILTER (WHERE x.state = 'paid') AS paid,"
    "           sum(x.amount) FILTER (WHERE x.state = 'pending') AS pending"
    "      FROM offpeak.payout x WHERE x.supplier_id = s.id AND x.asset = :asset) p ON true"
    " WHERE CAST(:supplier AS uuid) IS NULL OR s.id = :supplier"
    " ORDER BY s.created_at, s.id LIMIT :limit"
)
# `ref` of the event is the payout's id, padded on the left to 32 bytes.
PENDING = text(
    "SELECT p.id, p.address, p.amount, f.failures, f.failed_at"
    "  FROM offpeak.payout p"
    "  LEFT JOIN LATERAL ("
    "    SELECT count(*) AS failures, max(e.mined_at) AS failed_at FROM offpeak.chain_event e"
    "     WHERE e.payer = p.address AND e.kind = 'payout-failed' AND e.state = 'booked'"
    "       AND e.ref = decode(repeat('00', 16), 'hex') || uuid_send(p.id)) f ON true"
    " WHERE p.state = 'pending' AND p.asset = :asset ORDER BY p.id LIMIT :limit"
)
STATEMENT_LIMIT = 1_000
PENDING_LIMIT = 500


class PayoutRepository:
    """Reads and requests payouts inside one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def statements(
        self, *, asset: Address, supplier: UUID | None = None
    ) -> list[SupplierStatement]:
        """Return what suppliers earned and got, in order of registration."""
        given = {"asset": asset, "supplier": supplier, "limit": STATEMENT_LIMIT}
        return [_statement(row) for row in await self._tx.execute(STATEMENTS, given)]

    async def request(
        self, payout_id: UUID, statement: SupplierStatement, *, asset: Address
    ) -> str:
        """Set aside what a statement says is to be paid; return the database's code."""
        given = {
            "id": payout_id,
            "supplier": statement.supplier_id,
            "address": statement.address,
            "asset": asset,
            "amount": statement.to_be_paid,
        }
        return str(await self._tx.scalar(REQUEST, given))

    async def pending(self, *, asset: Address) -> list[PendingPayout]:
        """Return payouts that are not paid, oldest first."""
        given = {"asset": asset, "limit": PENDING_LIMIT}
        return [_pending(row) for row in await self._tx.execute(PENDING, given)]


def _statement(row: Any) -> SupplierStatement:
    owed, paid, pending = int(row.owed or 0), int(row.paid), int(row.pending)
    return SupplierStatement(
        supplier_id=row.id,
        name=row.name,
        address=None if row.payout_address is None else Address(row.payout_address),
        accrued=Nano(owed + paid + pending),
        paid=Nano(paid),
        pending=Nano(pending),
    )


def _pending(row: Any) -> PendingPayout:
    return PendingPayout(
        id=row.id,
        recipient=Address(row.address),
        amount=base_units_down(Nano(row.amount)),
        failures=row.failures,
        failed_at=row.failed_at,
    )
