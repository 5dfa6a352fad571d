"""Exports of an archive's books, and what is in them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.finance.export.interval import Interval
from app.finance.export.log import ExportLog
from app.finance.export.service import Export, ExportService, Order
from app.finance.export.writer import Format
from tests.integration.books import Books
from tests.integration.receipts.conftest import DOMAIN, Archive

NOVEMBER = Interval.month("2025-11")
DECEMBER = Interval.month("2025-12")


def at(text: str) -> datetime:
    """Return a UTC time."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


@dataclass
class Exporter:
    """An archive with an owner's connection, to move what happened into the past."""

    archive: Archive
    owner: Books

    def service(self) -> ExportService:
        log = ExportLog(self.archive.database, self.archive.terms)
        return ExportService(self.archive.database, log, DOMAIN)

    async def export(
        self,
        folder: Path,
        kind: Format = Format.JSONL,
        interval: Interval = NOVEMBER,
        *,
        allow_open: bool = False,
    ) -> Export:
        order = Order(interval=interval, format=kind, target=folder, allow_open=allow_open)
        return await self.service().export(order, lambda _: None)

    def move(self, when: datetime) -> None:
        """Date everything that is not sealed yet at `when`."""
        self.owner.connection.execute(
            "UPDATE offpeak.usage_record SET completed_at = %s, include_by = %s"
            " WHERE signature IS NULL",
            (when, when),
        )
        self.owner.connection.execute(
            "UPDATE offpeak.transfer SET created_at = %s WHERE created_at > '2026-01-01'", (when,)
        )
