"""Receipts for their payers: everything that is stored of a record, in one file."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.jobs.content import open_answer, open_request
from app.kit.cipher import ContentCipher
from app.kit.errors import ContentUnreadable, UnknownContentKey
from app.receipts.anchor_repository import AnchorRepository
from app.receipts.errors import RecordNotFound
from app.receipts.log_repository import CheckpointRow, LogRepository
from app.receipts.proofs import batch_part, prove, rotations_until
from app.receipts.record import RecordSigner, StoredRecord
from app.receipts.repository import ReceiptRepository
from ledger.accounts import wallet_account
from ledger.checkpoint import LogProof
from ledger.encoding import Address
from ledger.onchain import Anchor, ContractCheck, ContractMethod
from ledger.receipt import (
    Acceptance,
    BatchPart,
    KeyEntry,
    Opening,
    Receipt,
    SignedMessage,
    SupplierPart,
)

EVIDENCE = text(
    "SELECT a.message, a.signature, a.quote, a.quote_signature, j.id AS job_id, j.request,"
    " j.result, u.leaf_index, l.statement, l.statement_signature, g.device_key,"
    " s.method AS contract_method, s.block_number AS contract_block, s.block_hash AS contract_hash"
    " FROM offpeak.usage_record u LEFT JOIN offpeak.correction c ON c.record_id = u.record_id"
    " JOIN offpeak.job j ON j.id = coalesce(c.job_id, u.record_id)"
    " JOIN offpeak.request_authorization a ON a.digest = j.authorization_digest"
    " LEFT JOIN offpeak.contract_signature s ON s.digest = a.digest"
    " LEFT JOIN offpeak.lease l ON l.job_id = j.id AND l.state = 'done' AND l.statement IS NOT NULL"
    " LEFT JOIN offpeak.agent g ON g.id = l.agent_id"
    " WHERE u.record_id = :record AND a.payer = :payer"
)
"""What stands behind a record; the statement is that of the lease that was settled."""

PAGE = text(
    "SELECT u.record_id, u.payer_seq, u.previous_record, u.outcome, u.charge, u.released,"
    " u.completed_at, u.include_by, u.leaf_index, b.number AS batch, b.start, e.index AS log_index,"
    " c.corrects FROM offpeak.usage_record u"
    " LEFT JOIN offpeak.correction c ON c.record_id = u.record_id"
    " LEFT JOIN offpeak.receipt_batch b ON b.start = (SELECT max(x.start) FROM"
    "   offpeak.receipt_batch x WHERE x.start <= u.leaf_index)"
    " LEFT JOIN offpeak.log_entry e ON e.batch_number = b.number"
    " WHERE u.account_id = :account AND u.payer_seq > :after"
    " ORDER BY u.payer_seq LIMIT :limit"
)


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """One record in its wallet's history, in the order of `payer_seq`, which has no gaps.

    `batch`, `index` (in the batch) and `log_index` are None until the record is sealed and its
    batch logged.
    """

    record_id: UUID
    payer_seq: int
    previous: UUID | None
    outcome: int
    corrects: UUID | None
    charge: int
    released: int
    completed_at: datetime
    include_by: datetime
    batch: int | None
    index: int | None
    log_index: int | None


@dataclass(frozen=True, slots=True)
class Proofs:
    """Where a record stands, all for one checkpoint; None while it is in no published log."""

    batch: BatchPart | None
    log_proof: LogProof | None
    keys: tuple[KeyEntry, ...]
    anchor: Anchor | None


class ReceiptService:
    """Makes receipts, each at one checkpoint: see `receipt`."""

    def __init__(
        self, database: Database, signer: RecordSigner, cipher: ContentCipher, *, token: Address
    ) -> None:
        """Take the database, what signs records and opens texts, and the settlement token."""
        self._database = database
        self._token = token
        self._signer = signer
        self._cipher = cipher

    async def receipt(self, record_id: UUID, *, payer: Address) -> bytes:
        """Return a record's receipt as a file.

        It is for the latest anchored checkpoint where that has the record, with its anchor; else
        for the latest one, without.

        Raises:
            RecordNotFound: this wallet has no such record.
            LogDamaged: the stored log does not prove it.
        """
        async with self._database.transaction() as tx:
            found = await tx.execute(EVIDENCE, {"record": record_id, "payer": payer})
            row = found.one_or_none()
            if row is None:
                raise RecordNotFound
            [stored] = (await ReceiptRepository(tx).records([record_id])).values()
            proofs = await self._proofs(tx, row.leaf_index)
        return Receipt(
            record=self._record(stored),
            quote=_signed(row.quote, row.quote_signature),
            acceptance=_acceptance(row),
            supplier=_supplier(row, stored),
            batch=proofs.batch,
            log_proof=proofs.log_proof,
            keys=proofs.keys,
            opening=self._opening(row),
            anchor=proofs.anchor,
        ).encode()

    async def page(self, payer: Address, *, after: int, limit: int) -> list[ReceiptLine]:
        """Return up to `limit` records of a wallet that follow on `after` in its sequence."""
        account = wallet_account(payer, self._token)
        given = {"account": account, "after": after, "limit": limit}
        async with self._database.transaction() as tx:
            return [_line(row) for row in await tx.execute(PAGE, given)]

    async def _proofs(self, tx: AsyncConnection, leaf_index: int | None) -> Proofs:
        """Return what proves a record, at its place in the sequence if it is sealed."""
        log = LogRepository(tx)
        if leaf_index is not None:
            anchor = await AnchorRepository(tx).latest(self._signer.domain)
            anchored = None if anchor is None else await log.checkpoint(anchor.size)
            place = None if anchored is None else await _place(tx, leaf_index, anchored)
            if anchored is not None and place is not None:
                batch, log_proof = place
                return Proofs(batch, log_proof, await _key_entries(tx, anchored), anchor)
        latest = await log.checkpoint()
        if latest is None:
            return Proofs(None, None, (), None)
        keys = await _key_entries(tx, latest)
        place = None if leaf_index is None else await _place(tx, leaf_index, latest)
        return Proofs(*place, keys, None) if place else Proofs(None, None, keys, None)

    def _record(self, stored: StoredRecord) -> SignedMessage:
        signed = self._signer.sign(stored)
        return SignedMessage(signed.record.canonical().decode(), signed.signature)

    def _opening(self, row: Any) -> Opening | None:
        """Return the texts while they are kept; what cannot be read is left out."""
        if row.request is None:
            return None
        try:
            request = open_request(self._cipher, row.job_id, bytes(row.request))
            answer = None
            if row.result is not None:
                answer = open_answer(self._cipher, row.job_id, bytes(row.result))
        except (ContentUnreadable, UnknownContentKey):
            return None
        return Opening(
            request.canonical.decode(),
            request.salt,
            answer.content if answer else None,
            answer.finish_reason if answer else None,
        )


async def _key_entries(tx: AsyncConnection, checkpoint: CheckpointRow) -> tuple[KeyEntry, ...]:
    rotations = await rotations_until(LogRepository(tx), checkpoint.size)
    entries = [KeyEntry(each.entry, await prove(tx, each.index, checkpoint)) for each in rotations]
    return tuple(entries)


async def _place(
    tx: AsyncConnection, leaf_index: int, checkpoint: CheckpointRow
) -> tuple[BatchPart, LogProof] | None:
    """Return where a sealed record stands, None while its batch is not in the published log."""
    log = LogRepository(tx)
    batch = await log.batch_of_leaf(leaf_index)
    entry = None if batch is None else await log.entry_of_batch(batch.number)
    if batch is None or entry is None or entry.index >= checkpoint.size:
        return None
    part = await batch_part(log, batch, leaf_index)
    return part, await prove(tx, entry.index, checkpoint)


def _acceptance(row: Any) -> Acceptance:
    """Return what the wallet signed; of a contract wallet with the block where it was confirmed."""
    check = None
    if row.contract_method is not None:
        method = ContractMethod(row.contract_method)
        check = ContractCheck(method, row.contract_block, bytes(row.contract_hash))
    return Acceptance(bytes(row.message).decode(), bytes(row.signature), check)


def _signed(message: bytes, signature: bytes) -> SignedMessage:
    return SignedMessage(bytes(message).decode(), bytes(signature))


def _supplier(row: Any, stored: StoredRecord) -> SupplierPart | None:
    """Return the agent's statement; a record that names none had no answer settled."""
    if row.statement is None or not any(stored.supplier_statement):
        return None
    statement, signature = bytes(row.statement).decode(), bytes(row.statement_signature)
    return SupplierPart(statement, signature, bytes(row.device_key))


def _line(row: Any) -> ReceiptLine:
    return ReceiptLine(
        record_id=row.record_id,
        payer_seq=row.payer_seq,
        previous=row.previous_record,
        outcome=row.outcome,
        corrects=row.corrects,
        charge=row.charge,
        released=row.released,
        completed_at=row.completed_at,
        include_by=row.include_by,
        batch=row.batch,
        index=None if row.batch is None else row.leaf_index - row.start,
        log_index=row.log_index,
    )
