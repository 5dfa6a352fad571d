"""Exports of an archive's books, and what is in them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.db.engine import open_database
from app.finance.export.folder import files_of
from app.finance.export.log import ExportLog
from app.finance.export.service import Export, ExportService, Order
from app.finance.export.writer import Format
from app.finance.interval import Interval, month_interval
from app.receipts.appending import LogWriter
from ledger.export_evidence import KEYS_FILE, MANIFEST_FILE, MANIFEST_PROOF_FILE
from ledger.log_entry import EntryKind
from ledger.manifest import ExportManifest
from ledger.note import Note, NoteSigner
from ledger.verify.export import verify_export
from ledger.verify.export_report import show
from ledger.verify.policy import parse_policy
from tests.engines import Cluster
from tests.integration.books import Books, Seller, wallet
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, Archive, seed

NOVEMBER = month_interval("2025-11")
DECEMBER = month_interval("2025-12")


def at(text: str) -> datetime:
    """Return a UTC time."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


@dataclass
class Exporter:
    """An archive with an owner's connection, to move what happened into the past."""

    url: str
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
        self.owner.connection.execute(
            "UPDATE offpeak.cost_entry SET booked_at = %s WHERE booked_at > '2026-01-01'", (when,)
        )


def policy(*more: str) -> str:
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


def rewritten(path: Path, edit: Callable[[list[str]], list[str]]) -> None:
    """Change a file of an export line by line."""
    path.write_text("".join(edit(path.read_text().splitlines(keepends=True))))


async def relogged(
    archive: Archive, folder: Path, edit: Callable[[ExportManifest], ExportManifest]
) -> None:
    """Sign and log a manifest over what lies in the folder now, as a dishonest operator could."""
    note = (folder / MANIFEST_FILE).read_bytes()
    manifest = ExportManifest.read(Note.parse(note))
    for name in (MANIFEST_FILE, MANIFEST_PROOF_FILE):
        (folder / name).unlink()
    keys = (folder / KEYS_FILE).read_bytes()
    (folder / KEYS_FILE).unlink()
    changed = edit(replace(manifest, files=files_of(folder)))
    log = ExportLog(archive.database, archive.terms)
    note = log.sign(changed)
    await LogWriter(archive.database).append(EntryKind.EXPORT_MANIFEST, note)
    logged = await log.publish(note)
    (folder / KEYS_FILE).write_bytes(keys)
    (folder / MANIFEST_FILE).write_bytes(logged.note)
    (folder / MANIFEST_PROOF_FILE).write_text(logged.proof.text())


@dataclass(frozen=True)
class Prepared:
    """A database to copy, and who sells in it."""

    url: str
    seller: Seller


@pytest.fixture(scope="session")
def prepared(cluster: Cluster) -> Iterator[Prepared]:
    """Two wallets' records in October, November and December of 2025, made once."""
    url = cluster.create()
    yield Prepared(url, asyncio.run(prepare(url)))
    cluster.drop(url)


async def prepare(url: str) -> Seller:
    """Sell, end, sign and seal; return the seller."""
    database = open_database(url, pool_size=4)
    with Books(url) as books, Books(url, role="none") as owner:
        exporter = Exporter(url, Archive(books, database, books.seller(10_000)), owner)
        archive = exporter.archive
        for when in (
            "2025-10-31 23:59:59",
            "2025-11-01 00:00:00",
            "2025-11-30 23:59:59",
            "2025-12-01 00:00:00",
        ):
            archive.end_jobs(wallet(1), 3, charge=7)
            archive.end_jobs(wallet(2), 2, charge=0)
            exporter.move(at(when))
            await archive.sign()
        await archive.sequencer(limit=8).run_once()
    await database.dispose()
    return archive.seller


@pytest.fixture
async def exporter(cluster: Cluster, prepared: Prepared) -> AsyncIterator[Exporter]:
    """An archive of its own with the prepared records."""
    url = cluster.create(like=prepared.url)
    database = open_database(url, pool_size=4)
    with Books(url) as books, Books(url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.agent_session SET seen_at = clock_timestamp()")
        owner.connection.execute("UPDATE offpeak.deployment SET offer_until = now() + '1 h'")
        yield Exporter(url, Archive(books, database, prepared.seller), owner)
    await database.dispose()
    cluster.drop(url)
