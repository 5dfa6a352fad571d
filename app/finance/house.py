"""House accounts: balances rolled up from transfers, never kept inline."""

from sqlalchemy import text

from app.db.engine import Database

ROLL_UP = text("SELECT offpeak.roll_up_house()")


class HouseBooks:
    """The accounts that are ours and our suppliers'."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def roll_up_once(self) -> int:
        """Fold finished transfers into the balances; return how many accounts moved on."""
        async with self._database.transaction() as tx:
            return int(await tx.scalar(ROLL_UP) or 0)
