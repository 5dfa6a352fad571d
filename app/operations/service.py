"""Readiness: database, schema, keys; Valkey only degrades."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from sqlalchemy.exc import SQLAlchemyError

from app.db.engine import Database
from app.db.errors import DatabaseAway
from app.db.migrate import schema_problem
from app.kit.valkey import Valkey, answers

CHECK_SECONDS = 3.0
OK = "ok"

Status = Literal["ready", "degraded", "not-ready"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer of one check of everything."""

    status: Status
    checks: dict[str, str]


class ReadinessService:
    """Checks what this process needs, each time it is asked."""

    def __init__(self, database: Database, valkey: Valkey | None, *, head: str) -> None:
        self._database = database
        self._valkey = valkey
        self._head = head
        self._draining = False

    def drain(self) -> None:
        """Say not ready from now on, so that a load balancer stops sending."""
        self._draining = True

    async def check(self) -> Readiness:
        """Return the state of each part; never raises, never takes much over 3 s.

        Keys need no check here: the application is not built without them.
        """
        database, valkey = await asyncio.gather(self._database_state(), self._valkey_state())
        checks = {"database": database, "keys": OK, "valkey": valkey}
        if self._draining:
            checks["process"] = "shutting down"
        if self._draining or database != OK:
            return Readiness("not-ready", checks)
        return Readiness("ready" if valkey == OK else "degraded", checks)

    async def _database_state(self) -> str:
        try:
            async with asyncio.timeout(CHECK_SECONDS), self._database.transaction() as tx:
                return await schema_problem(tx, head=self._head) or OK
        except TimeoutError:
            return "no answer in time"
        except (DatabaseAway, SQLAlchemyError, OSError) as error:
            return f"unreachable ({type(error).__name__})"

    async def _valkey_state(self) -> str:
        if self._valkey is None:
            return "not configured"
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return OK if await answers(self._valkey) else "unreachable"
        except TimeoutError:
            return "no answer in time"
