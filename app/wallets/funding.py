"""Money for development wallets. Real deposits come from the chain, with the treasury."""

import secrets

from sqlalchemy import text

from app.config import Settings
from app.db.engine import Database
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from app.wallets.errors import FundingRefused
from ledger.encoding import Address
from ledger.money import Nano

CREDIT = text("SELECT offpeak.credit_deposit(:ref, :payer, :asset, :amount)")


class FundingService:
    """`offpeak dev fund`."""

    def __init__(self, database: Database, settings: Settings) -> None:
        """Take the database and its settings.

        Raises:
            FundingRefused: the settings are not a development's.
        """
        if not settings.is_development:
            raise FundingRefused("this is not a development environment")
        self._database = database
        self._asset = settings.token_address.lower()
        self._ids = IdSource(now_ms=unix_ms, random_bytes=secrets.token_bytes)

    async def fund(self, payer: Address, amount: Nano) -> None:
        """Credit `amount` to the wallet's available balance."""
        async with self._database.transaction() as tx:
            await tx.execute(
                CREDIT,
                {
                    "ref": self._ids.new(),
                    "payer": payer,
                    "asset": self._asset,
                    "amount": amount,
                },
            )
