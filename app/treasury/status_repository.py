"""Queries for `status.py`: what the books say at a block, and what waits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.chain.blocks import BlockId
from app.db.engine import Database
from app.treasury.commitment_plan import WalletSpend
from app.treasury.commitment_repository import CommitmentRepository
from app.treasury.fee import base_units_up, nano
from app.treasury.status import BookFigures, Kind, Pending
from ledger.accounts import HOUSE, AccountKind, account_id
from ledger.encoding import Address
from ledger.money import Nano

HALT = text("SELECT offpeak.halt_ledger(:reason)")
CURSOR = text(
    "SELECT now() AS now, c.number, c.hash, c.moved_at"
    " FROM (SELECT) one LEFT JOIN offpeak.chain_cursor c ON c.chain_id = :chain"
)
# Effects of events on the treasury's tokens, by whether they are booked and where they lie.
TOKENS = text(
    "WITH effect AS ("
    " SELECT e.state, e.block_number, CASE"
    "   WHEN e.kind IN ('deposited', 'plain-transfer') THEN e.amount"
    "   WHEN e.kind = 'withdrawn' THEN (e.extra ->> 'fee')::numeric - e.amount"
    "   ELSE -e.amount END AS amount"
    "  FROM offpeak.chain_event e WHERE e.chain_id = :chain AND e.kind IN"
    "   ('deposited', 'plain-transfer', 'withdrawn', 'exit-finalized', 'paid-out')"
    "   AND (e.state = 'seen' OR e.state = 'booked' AND e.block_number > :block))"
    " SELECT coalesce(sum(amount) FILTER (WHERE state = 'booked'), 0) AS early,"
    "  coalesce(sum(amount) FILTER (WHERE state = 'seen' AND block_number <= :block), 0) AS late,"
    "  (SELECT count(*) FROM offpeak.chain_event e WHERE e.chain_id = :chain"
    "    AND e.state <> 'orphaned' AND e.block_number <= :block"
    "    AND e.kind NOT IN ('plain-transfer', 'published')) AS events,"
    "  offpeak.house_balance_of(:treasury) AS treasury,"
    "  (SELECT coalesce(sum(w.owed), 0) FROM offpeak.wallet_balance w) AS owed,"
    "  (SELECT coalesce(sum(e.amount), 0) FROM offpeak.chain_event e"
    "    LEFT JOIN offpeak.suspense_claim c ON c.event_id = e.id AND c.state = 'credited'"
    "    WHERE e.chain_id = :chain AND e.kind = 'plain-transfer' AND e.state = 'booked'"
    "    AND c.id IS NULL) AS suspense"
    " FROM effect"
)
# The oldest of everything that is not at its end. A commit or an anchor waits since the oldest
# thing that the chain has not been told.
PENDING = text(
    "SELECT 'deposit' AS kind, count(*) AS count, min(e.seen_at) AS since"
    "  FROM offpeak.chain_event e WHERE e.chain_id = :chain AND e.state = 'seen'"
    "   AND e.kind = 'deposited'"
    " UNION ALL SELECT 'event', count(*), min(e.seen_at)"
    "  FROM offpeak.chain_event e WHERE e.chain_id = :chain AND e.state = 'seen'"
    "   AND e.kind <> 'deposited'"
    " UNION ALL SELECT 'withdrawal', count(*), min(w.requested_at)"
    "  FROM offpeak.withdrawal w WHERE w.state = 'pending'"
    " UNION ALL SELECT 'transaction', count(*), min(t.created_at)"
    "  FROM offpeak.chain_transaction t WHERE t.chain_id = :chain"
    "   AND t.state IN ('queued', 'signed', 'mined')"
    " UNION ALL SELECT 'exit', count(*), min(x.ready_at) + interval '72 h'"
    "  FROM offpeak.wallet_exit x WHERE x.state = 'open'"
    " UNION ALL SELECT 'claim', count(*), min(s.requested_at)"
    "  FROM offpeak.suspense_claim s WHERE s.state = 'requested'"
    " UNION ALL SELECT 'payout', count(*), min(p.requested_at)"
    "  FROM offpeak.payout p WHERE p.state = 'pending'"
    " UNION ALL SELECT 'anchor', count(*), min(p.signed_at)"
    "  FROM offpeak.log_checkpoint p"
    "  WHERE p.size > coalesce((SELECT max(a.size) FROM offpeak.anchor a), 0)"
)
FIRST_UNCOMMITTED = text(
    "SELECT min(u.completed_at) FROM offpeak.usage_record u"
    " WHERE u.account_id = ANY(:accounts) AND u.completed_at > coalesce("
    "  (SELECT max(t.created_at) FROM offpeak.chain_transaction t"
    "    WHERE t.chain_id = :chain AND t.purpose = 'commit' AND t.state = 'done'), '-infinity')"
)
# Keys that ever sent, with what their open transactions may cost: the dearest form of each.
SENDERS = text(
    "SELECT t.sender, count(*) FILTER (WHERE t.state IN ('queued', 'signed', 'mined')) AS open,"
    " max(t.nonce) + 1 AS next_nonce,"
    " count(*) FILTER (WHERE t.state = 'queued') AS queued,"
    " coalesce(sum(t.gas * a.most) FILTER (WHERE t.state = 'signed'), 0) AS promised"
    " FROM offpeak.chain_transaction t"
    " LEFT JOIN LATERAL (SELECT max(x.max_fee) AS most FROM offpeak.chain_attempt x"
    "   WHERE x.transaction_id = t.id) a ON true"
    " WHERE t.chain_id = :chain GROUP BY t.sender ORDER BY t.sender"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The last final block up to which every event is stored, and when that was noted."""

    now: datetime
    block: BlockId | None
    moved_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSender:
    """What is stored of a key; `promised_wei` is what its signed transactions may cost."""

    address: Address
    open: int
    queued: int
    next_nonce: int | None
    promised_wei: int


class StatusRepository:
    """Reads inside one snapshot."""

    def __init__(self, view: AsyncConnection, *, chain_id: int, asset: Address) -> None:
        self._view = view
        self._chain_id = chain_id
        self._asset = asset

    async def scanned(self) -> Scanned:
        """Return how far the chain has been read."""
        row = (await self._view.execute(CURSOR, {"chain": self._chain_id})).one()
        block = None if row.number is None else BlockId(number=row.number, hash=bytes(row.hash))
        return Scanned(now=row.now, block=block, moved_at=row.moved_at)

    async def books(self, block: int, *, scan: Pending) -> BookFigures:
        """Return the books against a block; `scan` is how far behind reading itself is."""
        given = {
            "chain": self._chain_id,
            "block": block,
            "treasury": account_id(AccountKind.TREASURY, HOUSE, self._asset),
        }
        row = (await self._view.execute(TOKENS, given)).one()
        commit, commit_due, refund_due = await self._commit()
        pending = [_pending(each) for each in await self._view.execute(PENDING, given)]
        return BookFigures(
            tokens_nano=Nano(-int(row.treasury)),
            early=int(row.early),
            late=int(row.late),
            events=int(row.events),
            owed_nano=Nano(int(row.owed)),
            suspense_nano=nano(int(row.suspense)),
            commit_due=commit_due,
            refund_due=refund_due,
            pending=(scan, *pending, commit),
        )

    async def senders(self) -> list[StoredSender]:
        """Return every key that has sent or is to send."""
        rows = await self._view.execute(SENDERS, {"chain": self._chain_id})
        return [
            StoredSender(
                address=Address(row.sender),
                open=row.open,
                queued=row.queued,
                next_nonce=row.next_nonce,
                promised_wei=int(row.promised),
            )
            for row in rows
        ]

    async def _commit(self) -> tuple[Pending, int, int]:
        """Return what the chain has not been told of spending: waiting, due, to be refunded."""
        spends = CommitmentRepository(self._view, chain_id=self._chain_id)
        found = await spends.differences(asset=self._asset)
        due = {each.account_id: _missing(each) for each in found if each.room > 0}
        waiting = [account for account, missing in due.items() if missing > 0]
        since = None
        if waiting:
            given = {"chain": self._chain_id, "accounts": waiting}
            since = await self._view.scalar(FIRST_UNCOMMITTED, given)
        return (
            Pending(kind=Kind.COMMIT, count=len(waiting), since=since),
            sum(missing for missing in due.values() if missing > 0),
            sum(-_missing(each) for each in found if _missing(each) < 0),
        )


def _missing(spend: WalletSpend) -> int:
    return spend.refunded + base_units_up(spend.net) - spend.spent


def _pending(row: Any) -> Pending:
    return Pending(kind=Kind(row.kind), count=row.count, since=row.since)


async def halt(database: Database, reason: str) -> None:
    """Stop accepts, withdrawals and payouts until an operator has looked."""
    async with database.transaction() as tx:
        await tx.execute(HALT, {"reason": reason})
