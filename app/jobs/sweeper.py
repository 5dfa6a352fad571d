"""What time does to jobs: deadlines pass, texts are deleted."""

from sqlalchemy import text

from app.db.engine import Database

EXPIRE = text("SELECT job_id FROM offpeak.expire_due(:limit) WHERE code = 'ok'")
PURGE = text("SELECT offpeak.purge_content(:limit)")
LIMIT = 200


class Sweeper:
    """Ends overdue jobs with their hold and lease; deletes content past its retention time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expire_once(self) -> int:
        """End up to `LIMIT` jobs past their deadline; return how many."""
        async with self._database.transaction() as tx:
            return len((await tx.execute(EXPIRE, {"limit": LIMIT})).all())

    async def purge_once(self) -> int:
        """Delete request and answer of up to `LIMIT` jobs; return how many."""
        async with self._database.transaction() as tx:
            return int(await tx.scalar(PURGE, {"limit": LIMIT}) or 0)
