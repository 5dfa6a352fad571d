"""One holder's account over an interval: opening, movements, closing.

A movement counts when it is booked (see `periods`), so a statement of a closed month never changes
and its closing balance is the next one's opening balance.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.finance.errors import UnknownAccount
from app.finance.interval import Interval
from ledger.accounts import HOUSE, AccountKind, account_id
from ledger.encoding import Address
from ledger.money import Nano

READ_AT_ONCE: Final = 1_000
"""Movements in memory at a time."""

BALANCES = text(
    "WITH mark AS MATERIALIZED"
    " (SELECT offpeak.xid_mark(:start) AS start_xid, offpeak.xid_mark(:end) AS end_xid),"
    " mine AS (SELECT CASE WHEN t.credit = :account THEN t.amount ELSE -t.amount END AS amount,"
    "   t.created_at < :start AND t.xid < (SELECT start_xid FROM mark) AS is_before"
    "   FROM offpeak.transfer t WHERE (t.credit = :account OR t.debit = :account)"
    "   AND t.created_at < :end AND t.xid < (SELECT end_xid FROM mark))"
    " SELECT coalesce(sum(amount) FILTER (WHERE is_before), 0)::bigint AS opening,"
    " coalesce(sum(amount), 0)::bigint AS closing,"
    " count(*) FILTER (WHERE NOT is_before) AS movements,"
    " (SELECT coalesce(max(p.ends_at) >= :end, false) FROM offpeak.accounting_period p"
    "   WHERE p.state = 'closed') AS is_final FROM mine"
)
MOVEMENTS = text(
    "SELECT b.booked_at, b.created_at, b.ref, a.kind AS other, b.credit = :account AS is_credit,"
    " b.amount FROM offpeak.booked_transfers(:start, :end) b"
    " JOIN offpeak.account a ON a.id = CASE WHEN b.credit = :account THEN b.debit ELSE b.credit END"
    " WHERE b.credit = :account OR b.debit = :account"
    " ORDER BY b.booked_at, b.created_at, b.ref, b.leg"
)
# A hold counts as open until its record is booked, so held and balance speak of the same moment.
HELD = text(
    "SELECT coalesce(sum(h.amount), 0)::bigint"
    " FROM (SELECT offpeak.leaf_mark(:end) AS leaf) mark CROSS JOIN offpeak.job j"
    " JOIN offpeak.hold h ON h.id = j.id LEFT JOIN offpeak.usage_record u ON u.record_id = h.id"
    " WHERE j.account_id = :account AND h.created_at < :end AND (u.completed_at < :end"
    "   AND coalesce(u.leaf_index < mark.leaf, mark.leaf IS NULL)) IS NOT TRUE"
)
PENDING = text(
    "SELECT sum(e.amount) * 1000 FROM offpeak.chain_event e"
    " WHERE e.kind = 'deposited' AND e.state = 'seen' AND e.payer = :payer"
)
KNOWN = text("SELECT EXISTS (SELECT FROM offpeak.account a WHERE a.id = :account)")


class MovementKind(StrEnum):
    """What moved the money."""

    DEPOSIT = "deposit"
    CHARGE = "charge"
    REFUND = "refund"
    """What a correction gave back."""
    ACCRUAL = "accrual"
    """What a supplier earned by a lease."""
    WITHDRAWAL = "withdrawal"
    """Set aside for a withdrawal; what comes back is one that failed."""
    EXIT = "exit"
    """Set aside for an exit, or taken by one; what comes back was not taken."""
    CHAIN = "chain"
    """Taken because it is gone from the chain."""
    COVER = "cover"
    """Pays what the wallet owed."""
    CLAIM = "claim"
    """Tokens that were sent without a deposit, claimed."""
    PAYOUT = "payout"
    """Set aside for a payout on chain."""
    WITHDRAWAL_FEE = "withdrawal-fee"


_KINDS: Final = {
    frozenset((AccountKind.DEPOSIT_CLEARING, AccountKind.WALLET)): MovementKind.DEPOSIT,
    frozenset((AccountKind.FEE, AccountKind.SUPPLIER)): MovementKind.ACCRUAL,
    frozenset((AccountKind.WALLET, AccountKind.WITHDRAW_CLEARING)): MovementKind.WITHDRAWAL,
    frozenset((AccountKind.WALLET, AccountKind.EXIT_CLEARING)): MovementKind.EXIT,
    frozenset((AccountKind.WALLET, AccountKind.RECEIVABLE)): MovementKind.COVER,
    frozenset((AccountKind.WALLET, AccountKind.SUSPENSE)): MovementKind.CLAIM,
    frozenset((AccountKind.SUPPLIER, AccountKind.PAYOUT_CLEARING)): MovementKind.PAYOUT,
}


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose account in which token: a wallet's, a supplier's (by UUID), or our fees."""

    kind: AccountKind
    owner: str
    asset: Address

    @classmethod
    def fees(cls, asset: Address) -> "Holder":
        """What buyers were charged, less what suppliers earned of it."""
        return cls(AccountKind.FEE, HOUSE, asset)

    @property
    def account_id(self) -> UUID:
        """The account's id."""
        return account_id(self.kind, self.owner, self.asset)


@dataclass(frozen=True, slots=True)
class Movement:
    """One transfer as its holder sees it, in nano; `balance` is that after it.

    `reference` is the record of a charge or refund, the lease of an accrual, the deposit's own id.
    `happened_at` is before `booked_at` when it came too late for a closed period.
    """

    booked_at: datetime
    happened_at: datetime
    kind: MovementKind
    reference: UUID
    amount: Nano
    balance: Nano


@dataclass(slots=True)
class Statement:
    """A statement being read; all amounts in nano.

    `held` is what open holds take of the closing balance, `pending` what has been deposited and
    is not credited yet: both 0 for who is no wallet. `is_final` says that no movement can be added.
    """

    holder: Holder
    interval: Interval
    opening: Nano
    closing: Nano
    held: Nano
    pending: Nano
    count: int
    is_final: bool
    _view: AsyncConnection = field(repr=False)

    @property
    def available(self) -> Nano:
        """The closing balance without what is held."""
        return Nano(self.closing - self.held)

    async def movements(self) -> AsyncIterator[Movement]:
        """Yield the movements in order, each with the balance after it; ends at `closing`."""
        given = {"account": self.holder.account_id, **_bounds(self.interval)}
        balance = self.opening
        options = {"yield_per": READ_AT_ONCE}
        rows = await self._view.stream(MOVEMENTS, given, execution_options=options)
        async for some in rows.partitions(
            READ_AT_ONCE
        ):  # row by row each would switch to the driver and back
            for booked_at, created_at, ref, other, is_credit, size in some:
                amount = Nano(size if is_credit else -size)
                balance = Nano(balance + amount)
                kind = movement_kind(self.holder.kind, AccountKind(other), is_credit=is_credit)
                yield Movement(booked_at, created_at, kind, ref, amount, balance)
        assert balance == self.closing, "the movements do not lead to the closing balance"


class Statements:
    """Reads statements, each in one snapshot of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def of(self, holder: Holder, interval: Interval) -> AsyncGenerator[Statement]:
        """Open a statement; its movements can be read inside the block.

        Raises:
            UnknownAccount: nothing was ever booked for this holder.
        """
        given = {"account": holder.account_id, **_bounds(interval)}
        async with self._database.snapshot() as view:
            if not await view.scalar(KNOWN, given):
                raise UnknownAccount(f"{holder.kind} {holder.owner}", holder.asset)
            found = (await view.execute(BALANCES, given)).one()
            held = pending = 0
            if holder.kind is AccountKind.WALLET:
                held = await view.scalar(HELD, given)
                pending = await view.scalar(PENDING, {"payer": holder.owner})
            yield Statement(
                holder=holder,
                interval=interval,
                opening=Nano(found.opening),
                closing=Nano(found.closing),
                held=Nano(int(held or 0)),
                pending=Nano(int(pending or 0)),
                count=found.movements,
                is_final=found.is_final,
                _view=view,
            )


def movement_kind(mine: AccountKind, other: AccountKind, *, is_credit: bool) -> MovementKind:
    """Return what a transfer between two kinds of accounts is, seen from the first."""
    known = _KINDS.get(frozenset((mine, other)))
    if known is not None:
        return known
    if other is AccountKind.TREASURY:
        if mine is AccountKind.FEE:
            return MovementKind.WITHDRAWAL_FEE if is_credit else MovementKind.PAYOUT
        return MovementKind.DEPOSIT if is_credit else MovementKind.CHAIN
    assert {mine, other} == {AccountKind.WALLET, AccountKind.FEE}, f"{mine} and {other}"
    to_wallet = is_credit == (mine is AccountKind.WALLET)
    return MovementKind.REFUND if to_wallet else MovementKind.CHARGE


def _bounds(interval: Interval) -> dict[str, object]:
    return {"start": interval.start, "end": interval.end}
