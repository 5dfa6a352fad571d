"""One export from start to end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import text

from app.db.engine import Database
from app.finance.export.errors import ExportExists, IntervalOpen, RecordsPending, TooManyRows
from app.finance.export.folder import files_of, finish, unfinished
from app.finance.export.log import ExportLog
from app.finance.export.repository import ExportSource, Extent
from app.finance.export.rows import BatchPlace, Leaf, RecordRow, Totals
from app.finance.export.writer import MAX_SHEET_ROWS, Format, Scope
from app.finance.export.writers import open_writer
from app.finance.interval import Interval
from app.kit.clock import unix_seconds
from ledger.encoding import Address, Domain
from ledger.errors import LedgerError
from ledger.export_evidence import (
    EVIDENCE_FILE,
    KEYS_FILE,
    LEFT_OUT,
    MANIFEST_FILE,
    MANIFEST_PROOF_FILE,
    BatchLine,
    LeafLine,
    RecordLine,
    key_line,
)
from ledger.manifest import ExportManifest
from ledger.merkle import LogIndex
from ledger.money import Nano
from ledger.note import Note

SETTLING_SECONDS = 60
"""A settlement that took its time within the interval has committed or failed by then."""
IDLE = text("SET LOCAL idle_in_transaction_session_timeout = '10min'")
"""A chunk of rows may take longer to write than the application's usual limit."""

Advance = Callable[[int], None]
"""Told how many rows have been written since it was last told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is asked for. `allow_open` exports what is sealed of an interval that is not over."""

    interval: Interval
    format: Format
    target: Path
    allow_open: bool = False

    @property
    def from_at(self) -> int:
        """Return the interval's first second, in unix seconds."""
        return unix_seconds(self.interval.start)

    @property
    def to_at(self) -> int:
        """Return the second after its last."""
        return unix_seconds(self.interval.end)


@dataclass(frozen=True, slots=True)
class Export:
    """An export that is there, and whether it was there before; `paid` in nano per token."""

    manifest: ExportManifest
    folder: Path
    log_index: LogIndex
    is_new: bool
    paid: Mapping[Address, Nano]


@dataclass(slots=True)
class _Found:
    """What was seen while reading."""

    totals: Totals
    first_batch: int | None = None
    last_batch: int | None = None
    log_size: int = 0

    def count(self, batches: Sequence[BatchPlace]) -> None:
        """Take batches that were written, in their order."""
        if self.first_batch is None:
            self.first_batch = batches[0].number
        self.last_batch, self.log_size = batches[-1].number, batches[-1].log_index + 1


class ExportService:
    """Makes exports; reads one snapshot each."""

    def __init__(self, database: Database, log: ExportLog, domain: Domain) -> None:
        """Take the database, the log, and the domain that usage records are signed under."""
        self._database = database
        self._log = log
        self._domain = domain

    async def extent(self, order: Order) -> Extent:
        """Return how much an export would hold, after checking that it may be made.

        Raises:
            IntervalOpen, RecordsPending: not yet, unless `allow_open`.
            TooManyRows: more than the format can hold.
        """
        async with self._database.snapshot() as view:
            return await self._checked(ExportSource(view, order.interval, self._domain), order)

    async def export(self, order: Order, advance: Advance) -> Export:
        """Write an export, log its manifest, and give the folder its name.

        Raises:
            ExportError: see `app.finance.export.errors`; nothing is left under the final name.
            FocusRefused: a row that FOCUS 1.2 does not allow.
        """
        require_same_order(order)
        with unfinished(order.target) as folder:
            async with self._database.snapshot() as view:
                await view.execute(IDLE)
                source = ExportSource(view, order.interval, self._domain)
                extent = await self._checked(source, order)
                found = await self._write(source, order, folder, advance)
            manifest = self._manifest(order, extent, found, folder)
            index, is_new = await self._publish(manifest, order, folder)
        return Export(manifest, order.target, index, is_new, found.totals.paid)

    async def _checked(self, source: ExportSource, order: Order) -> Extent:
        extent = await source.extent()
        if not order.allow_open:
            missing = order.to_at + SETTLING_SECONDS - extent.now
            if missing > 0:
                raise IntervalOpen(order.to_at + SETTLING_SECONDS)
            if extent.pending:
                raise RecordsPending(extent.pending)
        rows = max(extent.records, extent.transfers)
        if order.format is Format.XLSX and rows > MAX_SHEET_ROWS:
            raise TooManyRows(rows, MAX_SHEET_ROWS)
        return extent

    async def _write(
        self, source: ExportSource, order: Order, folder: Path, advance: Advance
    ) -> _Found:
        scope = Scope(folder, order.from_at, order.to_at, self._domain.chain_id)
        found = _Found(Totals())
        with (
            (folder / EVIDENCE_FILE).open("wb") as evidence,
            closing(open_writer(order.format, scope)) as writer,
        ):
            if writer.takes_accounts:
                async for accounts in source.accounts():
                    writer.accounts(accounts)
            async for batches in source.batches():
                proofs = await self._log.proofs([batch.log_index for batch in batches])
                heads = {
                    batch.start: BatchLine(batch.header, proof).encode() + b"\n"
                    for batch, proof in zip(batches, proofs, strict=True)
                }
                for start, end in stretches(batches):
                    async for leaves in source.leaves(start, end):
                        rows = _write_leaves(leaves, heads, evidence, found.totals)
                        writer.records(rows)
                        advance(len(rows))
                found.count(batches)
            async for transfers in source.transfers():
                writer.transfers(transfers)
                found.totals.transfers += len(transfers)
                advance(len(transfers))
            if writer.takes_accounts:
                async for accounts in source.accounts():
                    writer.closing(accounts)
        return found

    async def _publish(
        self, manifest: ExportManifest, order: Order, folder: Path
    ) -> tuple[LogIndex, bool]:
        """Log the manifest, put what proves it beside it, and show the folder.

        Returns:
            Where the log holds the manifest, and whether it was logged now.
        """
        note = await self._log.find(manifest) or self._log.sign(manifest)
        shown = order.target / MANIFEST_FILE
        if shown.exists() and shown.read_bytes() != note:
            raise ExportExists(order.target)  # before anything is logged
        logged = await self._log.publish(note)
        rotations = await self._log.rotations(logged.proof.index)
        (folder / MANIFEST_FILE).write_bytes(note)
        (folder / MANIFEST_PROOF_FILE).write_bytes(logged.proof.text().encode())
        (folder / KEYS_FILE).write_bytes(b"".join(key_line(each) + b"\n" for each in rotations))
        finish(folder, order.target)
        return logged.proof.index, logged.is_new

    def _manifest(
        self, order: Order, extent: Extent, found: _Found, folder: Path
    ) -> ExportManifest:
        filters = []
        if extent.pending:
            filters.append((LEFT_OUT, f"{extent.pending} records not in the log"))
        if order.to_at + SETTLING_SECONDS > extent.now:
            filters.append(("open", "the interval was not over"))
        return ExportManifest(
            origin=self._log.origin,
            format=order.format,
            from_at=order.from_at,
            to_at=order.to_at,
            filters=tuple(filters),
            first_batch=found.first_batch,
            last_batch=found.last_batch,
            log_size=found.log_size,
            records=found.totals.records,
            transfers=found.totals.transfers,
            sums=found.totals.sums,
            files=files_of(folder),
        )


def stretches(batches: Sequence[BatchPlace]) -> list[tuple[int, int]]:
    """Return the places of batches, joined where one batch follows on another."""
    found: list[tuple[int, int]] = []
    for batch in batches:
        start = found.pop()[0] if found and found[-1][1] == batch.start else batch.start
        found.append((start, batch.end))
    return found


def _write_leaves(
    leaves: Iterable[Leaf], heads: Mapping[int, bytes], evidence: BinaryIO, totals: Totals
) -> list[RecordRow]:
    """Write leaves' evidence, each batch's head before its first; return the rows among them."""
    rows = []
    for leaf in leaves:
        evidence.write(heads.get(leaf.place, b""))
        if leaf.row is None:
            evidence.write(LeafLine(leaf.hash).encode() + b"\n")
            continue
        line = RecordLine(leaf.row.record.canonical(), leaf.row.signature)
        evidence.write(line.encode() + b"\n")
        rows.append(leaf.row)
    totals.add(rows)
    return rows


def require_same_order(order: Order) -> None:
    """Check that what stands under the target's name can be this export, before any work.

    Raises:
        ExportExists: it cannot.
    """
    if not order.target.exists():
        return
    try:
        data = (order.target / MANIFEST_FILE).read_bytes()
        manifest = ExportManifest.read(Note.parse(data))
    except (OSError, LedgerError):
        raise ExportExists(order.target) from None
    found = (manifest.format, manifest.from_at, manifest.to_at)
    if found != (order.format, order.from_at, order.to_at):
        raise ExportExists(order.target)
