"""Reading a wallet."""

from app.db.engine import Database
from app.wallets.balance import Balance
from app.wallets.heads import ChainHeads
from app.wallets.repository import WalletRepository
from ledger.encoding import Address
from ledger.money import ZERO, Nano


class WalletService:
    """Balances of one settlement token."""

    def __init__(
        self,
        database: Database,
        *,
        token: Address,
        safe_limit: Nano = ZERO,
        heads: ChainHeads | None = None,
    ) -> None:
        """Take the token, how much may count before it is final, and the chain if there is one."""
        self._database = database
        self.token = token
        self._safe_limit = safe_limit
        self._heads = heads

    async def balance(self, payer: Address) -> Balance:
        """Return every bucket of the wallet as of one instant, all zero if it was never seen."""
        heads = await self._heads.now() if self._heads else None
        async with self._database.snapshot() as view:
            return await WalletRepository(view).whole_balance(
                payer, asset=self.token, safe_limit=self._safe_limit, heads=heads
            )
