"""Seals records into receipt batches as the sequencer does, by the same SQL functions.

Headers and sums are real; signatures, hashes and checkpoints are made up, since what is tested with
it is the books, not the log.
"""

from uuid import UUID

from ledger.encoding import Address
from ledger.log_entry import NO_HEADER, AssetSums, BatchHeader, EntryKind, add_up, entry_leaf_hash
from ledger.money import Nano
from tests.integration.books import Books, digest

KEY_ID = "0" * 8


def sign_all(books: Books) -> int:
    """Store a made-up signature wherever there is none; return how many."""
    row = books.one(
        "SELECT offpeak.store_signatures(array_agg(record_id), 'test', array_agg(%s::bytea))"
        " FROM offpeak.usage_record WHERE signature IS NULL",
        b"s" * 65,
    )
    return int(row[0] or 0)


def seal(books: Books, *, log: bool = True) -> list[UUID]:
    """Sign and seal every record that is not sealed yet, as one batch; log it with a checkpoint."""
    sign_all(books)
    found = books.rows(
        "SELECT u.*, a.asset FROM offpeak.usage_record u JOIN offpeak.account a"
        " ON a.id = u.account_id WHERE leaf_index IS NULL ORDER BY account_id, payer_seq"
    )
    if not found:
        return []
    last = books.rows("SELECT * FROM offpeak.receipt_batch ORDER BY number DESC LIMIT 1")
    number, start = (last[0].number + 1, last[0].end) if last else (0, 0)
    header = BatchHeader(
        number=number,
        start=start,
        end=start + len(found),
        records_root=digest(number),
        sums=add_up(
            AssetSums(
                asset=Address(row.asset),
                charge=Nano(row.charge),
                held=Nano(row.held),
                released=Nano(row.released),
            )
            for row in found
        ),
        first_at=int(min(row.completed_at for row in found).timestamp()),
        last_at=int(max(row.completed_at for row in found).timestamp()),
        key_id=KEY_ID,
        previous_header=digest(last[0].header) if last else NO_HEADER,
    ).encode()
    books.one(
        "SELECT offpeak.seal_batch(%s, %s, %s, %s, %s, '')",
        number,
        start,
        [row.record_id for row in found],
        [digest(row.record_id) for row in found],
        header,
    )
    if log:
        append_entry(books, EntryKind.BATCH_HEADER, header, batch=number)
        checkpoint(books)
    return [row.record_id for row in found]


def append_entry(books: Books, kind: EntryKind, entry: bytes, *, batch: int | None = None) -> None:
    """Append an entry to the log, without the nodes of its tree."""
    books.one(
        "SELECT offpeak.append_log_entry(count(*), %s, %s, %s, %s, '{}', '{}', '{}')"
        " FROM offpeak.log_entry",
        str(kind),
        entry,
        entry_leaf_hash(kind, entry),
        batch,
    )


def checkpoint(books: Books) -> None:
    """Store a checkpoint of the next size."""
    books.one(
        "SELECT offpeak.store_checkpoint(count(*) + 1, %s, %s) FROM offpeak.log_checkpoint",
        bytes(32),
        b"note",
    )
