"""HTTP for receipts (their payer's) and for the log (anybody's, cacheable)."""

import hashlib
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.kit.clock import format_time, utc_now
from app.kit.ids import IdPrefix, format_id, parse_id
from app.receipts.bundle import ReceiptLine, ReceiptService
from app.receipts.log import LogReader
from app.receipts.schemas import (
    BatchProofOut,
    ConsistencyOut,
    LogKeyOut,
    LogKeysOut,
    ReceiptLineOut,
    ReceiptPageOut,
)
from app.wallets.endpoints import ReadHeader, read_gate
from app.wallets.read_access import ReadGate
from ledger.log_entry import EntryKind
from ledger.merkle import MAX_TREE_SIZE, LogIndex
from ledger.money import Nano, format_amount
from ledger.usage import Outcome

router = APIRouter(prefix="/v1")

MAX_PAGE = 100
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
"""Of what can never change: an entry, a checkpoint of a size, a proof between sizes."""
BRIEFLY = {"Cache-Control": "public, max-age=5"}
PRIVATE = {"Cache-Control": "private, no-store"}
TEXT = "text/plain; charset=utf-8"

Place = Annotated[int, Path(ge=0, le=MAX_TREE_SIZE)]
Size = Annotated[int, Query(ge=0, le=MAX_TREE_SIZE)]


class TextResponse(Response):
    """Plain text."""

    media_type = TEXT


def log_reader(request: Request) -> LogReader:
    """Return the reader that the application was built with."""
    reader = request.app.state.log
    assert isinstance(reader, LogReader)
    return reader


def receipt_service(request: Request) -> ReceiptService:
    """Return the service that the application was built with."""
    service = request.app.state.receipts
    assert isinstance(service, ReceiptService)
    return service


Log = Annotated[LogReader, Depends(log_reader)]


# --- a wallet's own -------------------------------------------------------------------------


@router.get(
    "/receipts/{record_id}",
    tags=["receipts"],
    response_class=Response,
    responses={200: {"content": {"application/json": {}}, "description": "The receipt, a file."}},
)
async def get_receipt(
    record_id: Annotated[str, Path(description="`job_` and a UUID.", max_length=64)],
    receipts: Annotated[ReceiptService, Depends(receipt_service)],
    gate: Annotated[ReadGate, Depends(read_gate)],
    authorization: ReadHeader = None,
) -> Response:
    """Return the signing wallet's receipt of a job; read access of scope `receipts`."""
    payer = await gate.payer(authorization, scope="receipts", now=utc_now())
    record = parse_id(IdPrefix.JOB, record_id)
    body = await receipts.receipt(record, payer=payer)
    named = f'attachment; filename="{record_id}.receipt.json"'
    headers = {**PRIVATE, "Content-Disposition": named}
    return Response(body, media_type="application/json", headers=headers)


@router.get("/receipts", tags=["receipts"])
async def list_receipts(
    receipts: Annotated[ReceiptService, Depends(receipt_service)],
    gate: Annotated[ReadGate, Depends(read_gate)],
    after: Annotated[
        int, Query(ge=0, le=2**62, description="Only records after this payer_seq.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = MAX_PAGE,
    authorization: ReadHeader = None,
) -> ReceiptPageOut:
    """List the signing wallet's records in their order, so that it sees gaps by itself."""
    payer = await gate.payer(authorization, scope="receipts", now=utc_now())
    lines = await receipts.page(payer, after=after, limit=limit + 1)
    shown = lines[:limit]
    more = shown[-1].payer_seq if len(lines) > limit else None
    return ReceiptPageOut(receipts=[line_out(each) for each in shown], next=more)


def line_out(line: ReceiptLine) -> ReceiptLineOut:
    """Return a line in wire form."""
    return ReceiptLineOut(
        record_id=format_id(IdPrefix.JOB, line.record_id),
        payer_seq=line.payer_seq,
        previous_record=_maybe_id(line.previous),
        outcome=Outcome(line.outcome).name.lower(),
        corrects_record=_maybe_id(line.corrects),
        charge=format_amount(Nano(line.charge)),
        released=format_amount(Nano(line.released)),
        completed_at=format_time(line.completed_at),
        include_by=format_time(line.include_by),
        batch=line.batch,
        batch_index=line.index,
        log_index=line.log_index,
    )


def _maybe_id(record: UUID | None) -> str | None:
    return None if record is None else format_id(IdPrefix.JOB, record)


# --- the log --------------------------------------------------------------------------------


@router.get("/log/checkpoint", tags=["log"], response_class=TextResponse)
async def latest_checkpoint(log: Log) -> Response:
    """Return the latest checkpoint, a C2SP signed note."""
    return _text((await log.checkpoint()).note, BRIEFLY)


@router.get("/log/checkpoints/{size}", tags=["log"], response_class=TextResponse)
async def checkpoint_of_size(size: Place, log: Log) -> Response:
    """Return the checkpoint of one size of the log."""
    return _text((await log.checkpoint(size)).note, FOR_EVER)


@router.get("/log/entries/{index}", tags=["log"], response_class=Response)
async def log_entry(index: Place, log: Log) -> Response:
    """Return an entry's exact bytes; `Offpeak-Entry-Kind` says what it is."""
    entry = await log.entry(index)
    kind = "application/json" if entry.kind is EntryKind.BATCH_HEADER else TEXT
    headers = {**FOR_EVER, "Offpeak-Entry-Kind": entry.kind.value}
    return Response(entry.entry, media_type=kind, headers=headers)


@router.get("/log/proofs/{index}", tags=["log"], response_class=TextResponse)
async def log_proof(
    index: Place,
    log: Log,
    size: Annotated[
        int | None, Query(ge=1, le=MAX_TREE_SIZE, description="At this size; else the latest.")
    ] = None,
) -> Response:
    """Return the proof that the log holds an entry, in C2SP tlog-proof form."""
    proof = await log.proof(LogIndex(index), size)
    return _text(proof.text().encode(), BRIEFLY if size is None else FOR_EVER)


@router.get("/log/consistency", tags=["log"])
async def consistency_proof(
    log: Log,
    response: Response,
    from_size: Annotated[int, Query(alias="from", ge=1, le=MAX_TREE_SIZE)],
    to_size: Annotated[int, Query(alias="to", ge=1, le=MAX_TREE_SIZE)],
) -> ConsistencyOut:
    """Return the proof that the log of one size is the start of that of another."""
    proof = await log.consistency(from_size, to_size)
    response.headers.update(FOR_EVER)
    hashes = ["0x" + each.hex() for each in proof]
    return ConsistencyOut(from_size=str(from_size), to_size=str(to_size), proof=hashes)


@router.get("/log/keys", tags=["log"])
async def log_keys(log: Log, response: Response) -> LogKeysOut:
    """List the keys that sign checkpoints and records, with their validity by log size."""
    table, size = await log.keys()
    response.headers.update(BRIEFLY)
    keys = [LogKeyOut.model_validate(key.message()) for key in table.keys]
    return LogKeysOut(origin=table.origin, size=str(size), keys=keys)


@router.get("/log/batches/{number}", tags=["log"], response_class=Response)
async def batch_header(number: Place, log: Log) -> Response:
    """Return a receipt batch's header: the exact bytes that the log holds."""
    batch = await log.batch(number)
    return Response(batch.header, media_type="application/json", headers=FOR_EVER)


@router.get("/log/batches/{number}/proofs/{index}", tags=["log"])
async def batch_inclusion(
    number: Place, index: Place, log: Log, response: Response
) -> BatchProofOut:
    """Return the proof that a leaf stands in a receipt batch."""
    leaf, part = await log.batch_proof(number, index)
    response.headers.update(FOR_EVER)
    proof = ["0x" + each.hex() for each in part.proof]
    shown = "0x" + leaf.hex()
    return BatchProofOut(batch=str(number), index=str(index), leaf_hash=shown, proof=proof)


def _text(body: bytes, headers: dict[str, str]) -> Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return TextResponse(body, headers={**headers, "ETag": etag})
