"""Queries on wallet balances and on what is on its way in or out."""

from dataclasses import replace
from typing import Final

from sqlalchemy import ColumnElement, Numeric, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import (
    account,
    chain_attempt,
    chain_cursor,
    chain_event,
    chain_transaction,
    suspense_claim,
    wallet_balance,
    wallet_exit,
    withdrawal,
)
from app.wallets.balance import (
    Balance,
    Heads,
    OpenExit,
    PendingDeposit,
    PendingWithdrawal,
    Unaccounted,
    depths,
)
from ledger.encoding import Address
from ledger.money import NANO_PER_BASE_UNIT, ZERO, Nano

SHOWN: Final = 50
"""Most items of a kind that are listed; sums hold all."""

MINED = ("mined", "done")


class WalletRepository:
    """Reads wallets inside one transaction; a snapshot, where buckets must not overlap."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def balance(self, payer: Address, *, asset: Address) -> Balance:
        """Return what a wallet has with us, all zero for a wallet never seen.

        What is on its way in or out is left empty: see `whole_balance`.
        """
        as_of = func.now().label("as_of")
        mine = (
            select(wallet_balance.c.available, wallet_balance.c.held, wallet_balance.c.owed)
            .join(account, account.c.id == wallet_balance.c.account_id)
            .where(account.c.owner == payer, account.c.asset == asset, account.c.kind == "wallet")
            .subquery()
        )
        one = select(as_of).subquery()
        query = select(one.c.as_of, mine.c.available, mine.c.held, mine.c.owed).select_from(
            one.outerjoin(mine, one.c.as_of.is_not(None))
        )
        row = (await self._tx.execute(query)).one()
        return Balance(
            as_of=row.as_of,
            available=Nano(row.available or 0),
            held=Nano(row.held or 0),
            owed=Nano(row.owed or 0),
        )

    async def whole_balance(
        self, payer: Address, *, asset: Address, safe_limit: Nano, heads: Heads | None
    ) -> Balance:
        """Return every bucket of a wallet, with the oldest items of each.

        Args:
            payer: The wallet.
            asset: The settlement token.
            safe_limit: How much of a wallet may be credited before it is final.
            heads: How far the chain is, if a node says so.
        """
        known = await self.balance(payer, asset=asset)
        pending, deposits = await self._deposits(payer, safe_limit, heads)
        withdrawing, withdrawals = await self._withdrawals(payer, heads)
        unaccounted, transfers = await self._transfers(payer)
        leaving = await self._exit(payer)
        return replace(
            known,
            pending=pending,
            deposits=deposits,
            withdrawing=withdrawing,
            withdrawals=withdrawals,
            exiting=leaving.set_aside if leaving else ZERO,
            exit=leaving,
            unaccounted=unaccounted,
            transfers=transfers,
        )

    async def _deposits(
        self, payer: Address, safe_limit: Nano, heads: Heads | None
    ) -> tuple[Nano, tuple[PendingDeposit, ...]]:
        event = chain_event.c
        query = (
            select(event.amount, event.tx_hash, event.block_number, _total(event.amount))
            .where(event.payer == payer, event.kind == "deposited", event.state == "seen")
            .order_by(event.block_number, event.log_index)
            .limit(SHOWN)
        )
        rows = (await self._tx.execute(query)).all()
        if not rows:
            return ZERO, ()
        amounts = [_nano(row.amount) for row in rows]
        not_final = await self._credited_not_final(payer)
        waits = depths(amounts, not_final=not_final, safe_limit=safe_limit)
        return _nano(rows[0].total), tuple(
            PendingDeposit(
                amount=amount,
                transaction=bytes(row.tx_hash),
                block=row.block_number,
                waits_for=depth,
                blocks_left=heads.left(row.block_number, depth) if heads else None,
            )
            for row, amount, depth in zip(rows, amounts, waits, strict=True)
        )

    async def is_credited(self, transaction: bytes) -> bool:
        """Return whether a deposit of this transaction is credited."""
        query = select(func.count()).where(
            chain_event.c.tx_hash == transaction,
            chain_event.c.kind == "deposited",
            chain_event.c.state == "booked",
        )
        return bool(await self._tx.scalar(query))

    async def _credited_not_final(self, payer: Address) -> Nano:
        """Return the wallet's deposits that are credited and lie after the last final block."""
        query = (
            select(func.coalesce(func.sum(chain_event.c.amount), 0))
            .outerjoin(chain_cursor, chain_cursor.c.chain_id == chain_event.c.chain_id)
            .where(
                chain_event.c.payer == payer,
                chain_event.c.kind == "deposited",
                chain_event.c.state == "booked",
                chain_event.c.block_number > func.coalesce(chain_cursor.c.number, -1),
            )
        )
        return _nano(await self._tx.scalar(query))

    async def _withdrawals(
        self, payer: Address, heads: Heads | None
    ) -> tuple[Nano, tuple[PendingWithdrawal, ...]]:
        mine, sent = withdrawal.c, chain_transaction.c
        latest = (
            select(sent.id, sent.state, sent.mined_hash, sent.mined_number, sent.last_error)
            .where(sent.purpose == "withdrawal", sent.subject == mine.id)
            .order_by(sent.created_at.desc())
            .limit(1)
            .lateral("latest")
        )
        attempt = (
            select(chain_attempt.c.hash)
            .where(
                chain_attempt.c.transaction_id == latest.c.id,
                chain_attempt.c.broadcast_at.is_not(None),
            )
            .order_by(chain_attempt.c.max_fee.desc())
            .limit(1)
            .scalar_subquery()
        )
        query = (
            select(
                mine.id,
                mine.amount,
                mine.fee,
                mine.deadline,
                _total(mine.amount),
                func.coalesce(latest.c.mined_hash, attempt).label("transaction"),
                case((latest.c.state.in_(MINED), latest.c.mined_number)).label("block"),
                latest.c.last_error,
            )
            .outerjoin(latest, mine.id.is_not(None))
            .where(mine.payer == payer, mine.state == "pending")
            .order_by(mine.id)
            .limit(SHOWN)
        )
        rows = (await self._tx.execute(query)).all()
        found = tuple(
            PendingWithdrawal(
                id=row.id,
                amount=Nano(row.amount),
                fee=Nano(row.fee),
                deadline=row.deadline,
                transaction=None if row.transaction is None else bytes(row.transaction),
                block=row.block,
                blocks_left=heads.left(row.block, "finalized") if heads and row.block else None,
                trouble=row.last_error,
            )
            for row in rows
        )
        return Nano(int(rows[0].total)) if rows else ZERO, found

    async def _exit(self, payer: Address) -> OpenExit | None:
        query = select(wallet_exit.c.amount, wallet_exit.c.clearing, wallet_exit.c.ready_at).where(
            wallet_exit.c.payer == payer, wallet_exit.c.state == "open"
        )
        row = (await self._tx.execute(query)).one_or_none()
        if row is None:
            return None
        return OpenExit(
            wanted=_nano(row.amount), set_aside=Nano(row.clearing), ready_at=row.ready_at
        )

    async def _transfers(self, payer: Address) -> tuple[Nano, tuple[Unaccounted, ...]]:
        event, claim = chain_event.c, suspense_claim.c
        query = (
            select(
                event.id,
                event.amount,
                event.tx_hash,
                event.block_number,
                event.state,
                claim.id.label("claim"),
                _total(event.amount),
            )
            .outerjoin(suspense_claim, claim.event_id == event.id)
            .where(
                event.payer == payer,
                event.kind == "plain-transfer",
                event.state != "orphaned",
                func.coalesce(claim.state, "none") != "credited",
            )
            .order_by(event.block_number, event.log_index)
            .limit(SHOWN)
        )
        rows = (await self._tx.execute(query)).all()
        found = tuple(
            Unaccounted(
                event=row.id,
                amount=_nano(row.amount),
                transaction=bytes(row.tx_hash),
                block=row.block_number,
                is_final=row.state == "booked",
                is_claimed=row.claim is not None,
            )
            for row in rows
        )
        return _nano(rows[0].total) if rows else ZERO, found


def _total(column: ColumnElement[int]) -> ColumnElement[int]:
    return func.sum(cast(column, Numeric)).over().label("total")


def _nano(base: object) -> Nano:
    """Return base units of the token, as the database gives them, as nano."""
    return Nano(int(str(base)) * NANO_PER_BASE_UNIT)
