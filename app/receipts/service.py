"""Signing usage records: at once where a job ended, later what a crash left unsigned."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from uuid import UUID

import structlog

from app.db.engine import Database
from app.receipts.record import RecordSigner, SignedRecord, StoredRecord
from app.receipts.repository import ReceiptRepository

log = structlog.get_logger()

REMEMBERED = 2_000
"""Records signed here lately, so that their buyers' views need not be signed again."""


class RecordService:
    """Signs the records of ended jobs; the signature is stored soon, the record usable at once."""

    def __init__(self, database: Database, signer: RecordSigner) -> None:
        self._database = database
        self._signer = signer
        self._recent: OrderedDict[UUID, SignedRecord] = OrderedDict()
        self._unstored: list[tuple[UUID, bytes]] = []
        self._storing: asyncio.Task[None] | None = None

    def sign(self, records: Iterable[StoredRecord]) -> list[SignedRecord]:
        """Return the records signed and begin to store their signatures. After their commit."""
        return [self._sign_one(stored) for stored in records]

    async def signed(self, record_id: UUID) -> SignedRecord | None:
        """Return the signed record of a job, None while the job has not ended."""
        recent = self._recent.get(record_id)
        if recent is not None:
            return recent
        async with self._database.statement() as tx:
            found = await ReceiptRepository(tx).records([record_id])
        return self._signer.sign(found[record_id]) if record_id in found else None

    async def sign_unsigned(self, limit: int) -> int:
        """Sign what a crash or the sweeper left unsigned, oldest first; return how many."""
        async with self._database.transaction() as tx:
            receipts = ReceiptRepository(tx)
            signed = [
                (stored.record_id, self._signer.sign(stored).signature)
                for stored in await receipts.unsigned(limit=limit)
            ]
            return await receipts.store_signatures(self._signer.key_id, signed) if signed else 0

    async def drain(self) -> None:
        """Return when every signature begun is stored, or has failed to be."""
        while self._storing is not None:
            await asyncio.wait([self._storing])

    def _sign_one(self, stored: StoredRecord) -> SignedRecord:
        signed = self._signer.sign(stored)
        self._recent[stored.record_id] = signed
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        if stored.signature is None:
            self._unstored.append((stored.record_id, signed.signature))
            if self._storing is None:
                self._storing = asyncio.create_task(self._store())
        return signed

    async def _store(self) -> None:
        """Store all there is, one call at a time. What fails is left to `sign_unsigned`."""
        try:
            while self._unstored:
                batch, self._unstored = self._unstored, []
                async with self._database.statement() as tx:
                    await ReceiptRepository(tx).store_signatures(self._signer.key_id, batch)
        except Exception:
            log.exception("signatures not stored")
        finally:
            self._storing = None
