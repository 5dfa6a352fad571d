"""Queries on what of the log is anchored on chain, inside one transaction."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from ledger.encoding import Domain
from ledger.onchain import Anchor

# A root that is not ours is nobody's anchor: `offpeak log check` and the anchoring loop report it.
LATEST = text(
    "SELECT a.size, a.root, e.tx_hash, e.block_number, e.block_hash, e.log_index"
    " FROM offpeak.anchor a JOIN offpeak.chain_event e ON e.id = a.event_id"
    " JOIN offpeak.log_checkpoint c ON c.size = a.size AND c.root = a.root"
    " WHERE e.chain_id = :chain_id ORDER BY a.size DESC LIMIT 1"
)


class AnchorRepository:
    """Reads anchors, which are final when they are stored."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def latest(self, domain: Domain) -> Anchor | None:
        """Return the largest anchored checkpoint of the log.

        Args:
            domain: That of usage records: its chain, and the anchor contract on it.
        """
        found = await self._tx.execute(LATEST, {"chain_id": domain.chain_id})
        row = found.one_or_none()
        return None if row is None else anchor_of(row, domain)


def anchor_of(row: Any, domain: Domain) -> Anchor:
    """Return a row as the anchor it stands for."""
    return Anchor(
        chain_id=domain.chain_id,
        contract=domain.verifying_contract,
        size=row.size,
        root=bytes(row.root),
        tx_hash=bytes(row.tx_hash),
        block_number=row.block_number,
        block_hash=bytes(row.block_hash),
        log_index=row.log_index,
    )
