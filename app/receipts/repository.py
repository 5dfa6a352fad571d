"""Queries on usage records inside one transaction."""

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.calls import SqlRead, SqlScalar
from app.receipts.record import StoredRecord
from ledger.encoding import Address
from ledger.money import Nano

STORE_SIGNATURES = SqlScalar(
    "store_signatures", {"record": "uuid[]", "key_id": "text", "signature": "bytea[]"}
)
RECORD_COLUMNS: LiteralString = (
    "u.*, c.corrects, a.payer, a.quote_digest, a.request_digest, a.digest AS accept_digest,"
    " j.model_revision, j.input_rate, j.output_rate, j.per_request, j.asset"
)
"""What `stored_record` reads, of `RECORD_TABLES`."""
RECORD_TABLES: LiteralString = (
    "offpeak.usage_record u LEFT JOIN offpeak.correction c ON c.record_id = u.record_id"
    " JOIN offpeak.job j ON j.id = coalesce(c.job_id, u.record_id)"
    " JOIN offpeak.request_authorization a ON a.digest = j.authorization_digest"
)
_RECORDS: LiteralString = "SELECT " + RECORD_COLUMNS + " FROM " + RECORD_TABLES
BY_ID = SqlRead(_RECORDS + " WHERE u.record_id = ANY(%(ids)b::uuid[])")
UNSIGNED = SqlRead(_RECORDS + " WHERE u.signature IS NULL ORDER BY u.record_id LIMIT %(limit)b")


class ReceiptRepository:
    """Reads usage records and stores their signatures."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def records(self, ids: Iterable[UUID]) -> dict[UUID, StoredRecord]:
        """Return those of these records that exist, by id: a job's own, or a correction."""
        found = await BY_ID.rows(self._tx, {"ids": list(ids)})
        return {row.record_id: stored_record(row) for row in found}

    async def unsigned(self, *, limit: int) -> list[StoredRecord]:
        """Return the oldest records without a signature."""
        return [stored_record(row) for row in await UNSIGNED.rows(self._tx, {"limit": limit})]

    async def store_signatures(self, key_id: str, signed: Sequence[tuple[UUID, bytes]]) -> int:
        """Store signatures of one key where there is none yet; return how many."""
        given = {
            "record": [record_id for record_id, _ in signed],
            "key_id": key_id,
            "signature": [signature for _, signature in signed],
        }
        return await STORE_SIGNATURES.value(self._tx, given)


def stored_record(row: Any) -> StoredRecord:
    """Return a row as the record it holds."""
    return StoredRecord(
        record_id=row.record_id,
        payer=Address(row.payer),
        payer_seq=row.payer_seq,
        previous_record=row.previous_record,
        corrects=row.corrects,
        quote_digest=bytes(row.quote_digest),
        accept_digest=bytes(row.accept_digest),
        request_digest=bytes(row.request_digest),
        response_digest=bytes(row.response_digest),
        supplier_statement=bytes(row.supplier_statement),
        model_revision=bytes(row.model_revision),
        input_tokens=row.input_tokens,
        cached_input_tokens=row.cached_input_tokens,
        output_tokens=row.output_tokens,
        reasoning_tokens=row.reasoning_tokens,
        input_rate=Nano(row.input_rate),
        output_rate=Nano(row.output_rate),
        per_request=Nano(row.per_request),
        asset=Address(row.asset),
        held=Nano(row.held),
        charge=Nano(row.charge),
        released=Nano(row.released),
        outcome=row.outcome,
        completed_at=row.completed_at,
        include_by=row.include_by,
        salt=bytes(row.salt),
        flags=tuple(row.flags),
        key_id=row.key_id,
        signature=None if row.signature is None else bytes(row.signature),
    )
