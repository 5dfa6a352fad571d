"""Shows the treasury's status as metrics, and logs each alarm when it comes and when it goes."""

from dataclasses import dataclass, field

import structlog

from app.treasury.metrics import TreasuryMetrics
from app.treasury.status_reader import StatusReader

log = structlog.get_logger()


@dataclass(slots=True)
class StatusLoop:
    """One round reads everything once; any number of workers may."""

    reader: StatusReader
    metrics: TreasuryMetrics
    _up: frozenset[str] = field(default=frozenset(), init=False)

    async def run_once(self) -> int:
        """Set every gauge; return how many alarms are up.

        Raises:
            RpcUnavailable, FinalBlockUnknown, DatabaseUnavailable: the gauges stay as they were,
                `read_timestamp_seconds` among them.
        """
        status = await self.reader.read()
        self.metrics.show(status)
        alarms = status.alarms()
        for alarm in alarms:
            if alarm.name not in self._up:
                log.error("treasury alarm", alarm=alarm.name, found=alarm.detail)
        names = frozenset(alarm.name for alarm in alarms)
        for gone in sorted(self._up - names):
            log.info("treasury alarm is over", alarm=gone)
        self._up = names
        return len(alarms)
