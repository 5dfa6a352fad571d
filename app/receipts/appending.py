"""Appending to the log: each entry once, whoever else appends at the same moment."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from app.db.engine import Database
from app.kit.errors import DatabaseConflict
from app.receipts.log_repository import LogRepository
from ledger.log_entry import EntryKind, entry_leaf_hash
from ledger.merkle import LogIndex, grow, root_nodes

ATTEMPTS = 5
"""How often a write to the log is tried when others write at the same moment."""

Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True)
class Logged:
    """Where an entry stands, and whether it was there before."""

    index: LogIndex
    is_new: bool


class LogWriter:
    """Appends entries, each once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, kind: EntryKind, entry: bytes, *, batch_number: int | None = None
    ) -> Logged:
        """Append an entry, or find where it stands already. Its checkpoint is signed later.

        Raises:
            DatabaseConflict: others appended at the same moment again and again; nothing was done.
        """

        async def once() -> Logged:
            async with self._database.transaction() as tx:
                return await append(LogRepository(tx), kind, entry, batch_number=batch_number)

        return await retried(once)


async def retried(work: Callable[[], Awaitable[Returned]]) -> Returned:
    """Return what `work` does, begun again while others write the log at the same moment.

    Raises:
        DatabaseConflict: the last of `ATTEMPTS` met others too.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(DatabaseConflict):
            return await work()
    return await work()


async def append(
    log: LogRepository,
    kind: EntryKind,
    entry: bytes,
    *,
    batch_number: int | None = None,
    expected: LogIndex | None = None,
) -> Logged:
    """Append an entry in the repository's transaction; see `LogWriter.append`.

    Args:
        log: The log, in the transaction to append in.
        kind: What the entry is.
        entry: Its bytes.
        batch_number: Of a batch header, its batch.
        expected: The only index at which it may stand, when that matters.
    """
    leaf = entry_leaf_hash(kind, entry)
    # The size first: whoever logs the same entry after this read moves the log on, which is a
    # conflict to retry; the other way round it would be a second entry with one leaf.
    size = await log.size()
    found = await log.index_of(leaf)
    if found is not None:
        return Logged(found, is_new=False)
    if expected is not None and size != expected:
        raise DatabaseConflict
    peaks = root_nodes(size)
    nodes = await log.nodes(peaks)
    added = grow([nodes[peak] for peak in peaks], size, leaf)
    await log.append(size, kind, entry, nodes=added, batch_number=batch_number)
    return Logged(LogIndex(size), is_new=True)
