"""Queries on what wallets spent here and what the chain was told of it."""

from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.treasury.commitment_plan import WalletSpend
from ledger.encoding import Address
from ledger.money import Nano

WALLET_LIMIT = 100_000
"""Most wallets that one plan looks at."""

# A record of a correction (outcome 4) holds the charge that it corrects as `held`. Only wallets for
# which the chain ever held something are told of: `room` is what it holds by its booked events.
SPENDS = text(
    "WITH chain AS ("
    " SELECT e.payer, sum(CASE"
    "   WHEN e.kind IN ('deposited', 'unaccounted-credited', 'refunded') THEN e.amount"
    "   WHEN e.kind IN ('withdrawn', 'exit-finalized') THEN -e.amount ELSE 0 END) AS held"
    "  FROM offpeak.chain_event e"
    "  WHERE e.chain_id = :chain AND e.state = 'booked' AND e.payer <> ''"
    "  GROUP BY e.payer),"
    " spend AS ("
    " SELECT u.account_id, sum(CASE WHEN u.outcome = 4 THEN u.charge - u.held ELSE u.charge END)"
    "   AS net FROM offpeak.usage_record u GROUP BY u.account_id)"
    " SELECT a.id, a.owner, coalesce(s.net, 0) AS net, coalesce(c.spent, 0) AS spent,"
    "   coalesce(c.refunded, 0) AS refunded, chain.held - coalesce(c.spent, 0) AS room,"
    "   coalesce(w.exiting, false) AS leaving"
    "  FROM chain JOIN offpeak.account a"
    "    ON a.owner = chain.payer AND a.kind = 'wallet' AND a.asset = :asset"
    "  LEFT JOIN spend s ON s.account_id = a.id"
    "  LEFT JOIN offpeak.wallet_chain c ON c.account_id = a.id"
    "  LEFT JOIN offpeak.wallet_balance w ON w.account_id = a.id"
    " WHERE ceil(coalesce(s.net, 0) / 1000) + coalesce(c.refunded, 0) <> coalesce(c.spent, 0)"
    " ORDER BY leaving DESC, a.id LIMIT :limit"
)
# Refunds that are on the way, or done and not booked.
BUSY = text(
    "SELECT t.subject FROM offpeak.chain_transaction t"
    " WHERE t.chain_id = :chain AND t.purpose = 'refund' AND t.subject = ANY(:subjects)"
    " AND t.state IN ('queued', 'signed', 'mined', 'done')"
)


class CommitmentRepository:
    """Reads spending inside one transaction."""

    def __init__(self, tx: AsyncConnection, *, chain_id: int) -> None:
        self._tx = tx
        self._chain_id = chain_id

    async def differences(self, *, asset: Address) -> list[WalletSpend]:
        """Return the wallets whose spending the chain has otherwise than the ledger."""
        given = {"chain": self._chain_id, "asset": asset, "limit": WALLET_LIMIT}
        return [_spend(row) for row in await self._tx.execute(SPENDS, given)]

    async def busy_refunds(self, subjects: list[UUID]) -> set[UUID]:
        """Return those of the refunds that were sent already."""
        given = {"chain": self._chain_id, "subjects": subjects}
        return set(await self._tx.scalars(BUSY, given))


def _spend(row: Any) -> WalletSpend:
    return WalletSpend(
        account_id=row.id,
        payer=Address(row.owner),
        net=Nano(int(row.net)),
        spent=int(row.spent),
        refunded=int(row.refunded),
        room=int(row.room),
        is_leaving=row.leaving,
    )
