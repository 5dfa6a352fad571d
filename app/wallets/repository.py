"""Queries on wallet balances."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import account, wallet_balance
from ledger.encoding import Address
from ledger.money import Nano


@dataclass(frozen=True, slots=True)
class Balance:
    """What a wallet holds at `as_of`, by the database clock; each bucket apart, in nano.

    `pending` is deposited but not yet confirmed.
    """

    available: Nano
    held: Nano
    pending: Nano
    as_of: datetime


class WalletRepository:
    """Reads wallets inside one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def balance(self, payer: Address, *, asset: Address) -> Balance:
        """Return a wallet's balance, all zero for a wallet never seen.

        Nothing is pending while deposits come from a later part of the system.
        """
        as_of = func.now().label("as_of")
        mine = (
            select(wallet_balance.c.available, wallet_balance.c.held)
            .join(account, account.c.id == wallet_balance.c.account_id)
            .where(account.c.owner == payer, account.c.asset == asset, account.c.kind == "wallet")
            .subquery()
        )
        one = select(as_of).subquery()
        query = select(one.c.as_of, mine.c.available, mine.c.held).select_from(
            one.outerjoin(mine, one.c.as_of.is_not(None))
        )
        row = (await self._tx.execute(query)).one()
        return Balance(Nano(row.available or 0), Nano(row.held or 0), Nano(0), row.as_of)
