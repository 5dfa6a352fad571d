"""Shows the treasury's status as metrics and alarms, and stops accepting when it is broken."""

from dataclasses import dataclass, field
from typing import Final

import structlog

from app.db.engine import Database
from app.treasury.metrics import TreasuryMetrics
from app.treasury.status import TreasuryStatus
from app.treasury.status_reader import StatusReader
from app.treasury.status_repository import halt

ROUNDS_UNTIL_HALT: Final = 2
"""One round may have met an endpoint that lags or lies."""

log = structlog.get_logger()


@dataclass(slots=True)
class StatusLoop:
    """One round reads everything once; any number of workers may."""

    reader: StatusReader
    database: Database
    metrics: TreasuryMetrics
    _broken: int = field(default=0, init=False)
    """Rounds in a row in which money was missing or too much."""
    _up: frozenset[str] = field(default=frozenset(), init=False)

    async def run_once(self) -> int:
        """Set every gauge; return how many alarms are up.

        Raises:
            RpcUnavailable, FinalBlockUnknown, DatabaseUnavailable: the gauges stay as they were,
                `read_timestamp_seconds` among them.
        """
        status = await self.reader.read()
        self.metrics.show(status)
        await self._stop_when_broken(status)
        alarms = status.alarms()
        for alarm in alarms:
            if alarm.name not in self._up:
                log.error("treasury alarm", alarm=alarm.name, found=alarm.detail)
        names = frozenset(alarm.name for alarm in alarms)
        for gone in sorted(self._up - names):
            log.info("treasury alarm is over", alarm=gone)
        self._up = names
        return len(alarms)

    async def _stop_when_broken(self, status: TreasuryStatus) -> None:
        """Stop accepts, withdrawals and payouts when two rounds in a row say the same.

        Events that are missing do not count: reading has stopped before them, nothing is booked.
        """
        self._broken = 0 if status.money_agrees else self._broken + 1
        if self._broken == ROUNDS_UNTIL_HALT:
            reason = "; ".join(alarm.detail for alarm in status.broken())
            await halt(self.database, f"treasury: {reason}")
            log.critical("chain and books do not agree: accepting is stopped", reason=reason)
