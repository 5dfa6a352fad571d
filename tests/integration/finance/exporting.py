"""Exports of an archive's books, and what is in them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.finance.export.interval import Interval
from app.finance.export.log import ExportLog
from app.finance.export.service import Export, ExportService, Order
from app.finance.export.writer import Format
from ledger.note import NoteSigner
from ledger.verify.export import verify_export
from ledger.verify.export_report import show
from ledger.verify.policy import parse_policy
from tests.integration.books import Books, wallet
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, Archive, seed

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


def policy(archive: Archive, *more: str) -> str:
    """Return a policy that trusts the archive's first checkpoint key."""
    key = NoteSigner(ORIGIN, seed("log")).verifier
    lines = [
        f"log {key}",
        "quorum none",
        f"domain {DOMAIN.chain_id} {DOMAIN.verifying_contract} {wallet(0xAB)}",
        *more,
    ]
    return "\n".join(lines) + "\n"


def verify(folder: Path, policy_text: str) -> tuple[int, dict[str, str]]:
    """Return the exit code of `offpeak-verify export`, and what each step said."""
    found = list(verify_export(str(folder), parse_policy(policy_text.encode())))
    code = show(found, lambda _: None, as_json=False)
    return code, {each.step: each.detail for each in found}
