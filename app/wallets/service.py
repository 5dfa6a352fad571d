"""Reading a wallet."""

from app.db.engine import Database
from app.wallets.repository import Balance, WalletRepository
from ledger.encoding import Address


class WalletService:
    """Balances of one settlement token."""

    def __init__(self, database: Database, *, token: Address) -> None:
        self._database = database
        self.token = token

    async def balance(self, payer: Address) -> Balance:
        """Return what the wallet holds, all zero if it was never seen."""
        async with self._database.transaction() as tx:
            return await WalletRepository(tx).balance(payer, asset=self.token)
