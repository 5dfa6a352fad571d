"""What receipts say together of one log: an entry at each index, a record at each place, in order.

Checkpoints of two sizes can only be compared with a proof between them. But two receipts that name
two entries for one index of the log, or two places for one record, contradict each other at sight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ledger.encoding import Address
from ledger.merkle import LogIndex
from ledger.verify.documents import uuid_text
from ledger.verify.problems import Kind, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """Where a record stands: its batch, and its `place` in the sequence of all sealed records.

    `header` and `previous` are the SHA-256 of its batch's header and of the one before.
    """

    log_index: LogIndex
    number: int
    start: int
    end: int
    header: bytes
    previous: bytes
    place: int


class Places:
    """Entries and places that were named so far, and what did not fit them."""

    def __init__(self) -> None:
        """Start with none."""
        self._entries: dict[LogIndex, bytes] = {}
        self._batches: dict[LogIndex, tuple[Sealed, Address]] = {}
        self._records: dict[int, bytes] = {}
        self._places: dict[bytes, int] = {}
        self._found: list[Problem] = []

    def entries(self, payer: Address, entries: tuple[tuple[LogIndex, bytes], ...]) -> None:
        """Take the log entries that a receipt proves, by index and leaf hash."""
        for index, leaf in entries:
            if self._entries.setdefault(index, leaf) != leaf:
                detail = f"two entries of the log at index {index}: the log was forked"
                self._found.append(Problem(Kind.LOG, payer, detail))

    def record(self, payer: Address, record_id: bytes, sealed: Sealed) -> None:
        """Take where a record stands."""
        self._batches.setdefault(sealed.log_index, (sealed, payer))
        if self._records.setdefault(sealed.place, record_id) != record_id:
            detail = f"two records at place {sealed.place} of the sequence of all records"
            self._found.append(Problem(Kind.LOG, payer, detail))
        if self._places.setdefault(record_id, sealed.place) != sealed.place:
            detail = f"{uuid_text(record_id)} was sealed twice"
            self._found.append(Problem(Kind.LOG, payer, detail))

    def problems(self) -> Iterator[Problem]:
        """Yield all that does not fit."""
        yield from self._found
        batches = [each for _, each in sorted(self._batches.items())]
        for (was, _), (now, payer) in pairwise(batches):
            if not _follows(was, now):
                detail = (
                    f"batch {now.number} at log index {now.log_index} does not follow on"
                    f" batch {was.number} at {was.log_index}"
                )
                yield Problem(Kind.LOG, payer, detail)


def _follows(was: Sealed, now: Sealed) -> bool:
    """Whether a batch can be later in the log than another; of a next one also whether it links."""
    if now.number == was.number + 1:
        return now.start == was.end and now.previous == was.header
    ahead = now.number - was.number
    return 0 < ahead <= now.log_index - was.log_index and now.start - was.end >= ahead - 1
