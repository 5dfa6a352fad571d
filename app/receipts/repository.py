"""Queries on usage records inside one transaction."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.calls import SqlRead, SqlScalar
from app.db.tables import correction, job, request_authorization, usage_record
from app.receipts.record import StoredRecord
from ledger.encoding import Address
from ledger.money import Nano

STORE_SIGNATURES = SqlScalar(
    "store_signatures", {"record": "uuid[]", "key_id": "text", "signature": "bytea[]"}
)
RECORDS: Select[tuple[object, ...]] = (
    select(
        usage_record,
        correction.c.corrects,
        request_authorization.c.payer,
        request_authorization.c.quote_digest,
        request_authorization.c.request_digest,
        request_authorization.c.digest.label("accept_digest"),
        job.c.model_revision,
        job.c.input_rate,
        job.c.output_rate,
        job.c.per_request,
        job.c.asset,
    )
    .outerjoin(correction, correction.c.record_id == usage_record.c.record_id)
    .join(job, job.c.id == func.coalesce(correction.c.job_id, usage_record.c.record_id))
    .join(request_authorization, request_authorization.c.digest == job.c.authorization_digest)
)
BY_ID = SqlRead(
    "SELECT u.*, c.corrects, a.payer, a.quote_digest, a.request_digest, a.digest AS accept_digest,"
    " j.model_revision, j.input_rate, j.output_rate, j.per_request, j.asset"
    " FROM offpeak.usage_record u LEFT JOIN offpeak.correction c ON c.record_id = u.record_id"
    " JOIN offpeak.job j ON j.id = coalesce(c.job_id, u.record_id)"
    " JOIN offpeak.request_authorization a ON a.digest = j.authorization_digest"
    " WHERE u.record_id = ANY(%(ids)b::uuid[])"
)


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
        query = RECORDS.where(usage_record.c.signature.is_(None))
        found = await self._tx.execute(query.order_by(usage_record.c.record_id).limit(limit))
        return [stored_record(row) for row in found]

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
