"""HTTP for withdrawals, claims and the treasury's terms."""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.chain.errors import ChainError
from app.kit.clock import format_time, utc_now
from app.kit.ids import IdPrefix, format_id, parse_id
from app.treasury.chain_view import TreasuryPlace
from app.treasury.claim import PlainTransfer
from app.treasury.claims import ClaimService
from app.treasury.errors import ChainNotConfigured, FeeUnknown
from app.treasury.fee import nano
from app.treasury.schemas import (
    RelayOut,
    SuspenseClaimIn,
    SuspenseListOut,
    SuspenseOut,
    TreasuryOut,
    WithdrawalIn,
    WithdrawalOut,
    WithdrawalPageOut,
)
from app.treasury.withdrawal import Relay, StoredWithdrawal, next_action
from app.treasury.withdrawals import WithdrawalService
from app.wallets.balance import Heads
from app.wallets.endpoints import ReadHeader, read_gate
from app.wallets.read_access import ReadGate
from ledger.encoding import checksum_address
from ledger.money import format_amount

router = APIRouter(prefix="/v1", tags=["treasury"])

MAX_PAGE = 100
DEFAULT_PAGE = 20


def withdrawal_service(request: Request) -> WithdrawalService:
    """Return the service that the application was built with."""
    service = request.app.state.withdrawals
    assert isinstance(service, WithdrawalService)
    return service


def treasury_place(request: Request) -> TreasuryPlace:
    """Return the contracts that the application was built with."""
    place = request.app.state.treasury_place
    assert isinstance(place, TreasuryPlace)
    return place


def claim_service(request: Request) -> ClaimService:
    """Return the service that the application was built with."""
    service = request.app.state.claims
    assert isinstance(service, ClaimService)
    return service


Claims = Annotated[ClaimService, Depends(claim_service)]
Withdrawals = Annotated[WithdrawalService, Depends(withdrawal_service)]
Gate = Annotated[ReadGate, Depends(read_gate)]


@router.get("/treasury")
async def get_treasury(
    place: Annotated[TreasuryPlace, Depends(treasury_place)], withdrawals: Withdrawals
) -> TreasuryOut:
    """Show the contracts, and what a deposit, a withdrawal and an exit are subject to now."""
    view = withdrawals.view
    fee = exit_delay = None
    with suppress(ChainNotConfigured, FeeUnknown, ChainError):
        exit_delay = await view.exit_delay(place.treasury)
        fee = await view.fee()
    return TreasuryOut(
        chain_id=place.chain_id,
        treasury=checksum_address(place.treasury),
        receipt_anchor=checksum_address(place.receipt_anchor),
        token=checksum_address(withdrawals.terms.token),
        has_chain=view.rpc is not None,
        exit_delay_seconds=exit_delay,
        deposit_safe_limit=format_amount(place.deposit_safe_limit),
        withdrawal_minimum=format_amount(withdrawals.terms.minimum),
        withdrawal_fee=None if fee is None else format_amount(nano(fee)),
        withdrawal_fee_base_units=None if fee is None else str(fee),
    )


@router.post("/withdrawals", status_code=202)
async def post_withdrawal(
    asked: WithdrawalIn, withdrawals: Withdrawals, response: Response
) -> WithdrawalOut:
    """Withdraw prepaid money to the wallet that signed; the same message gets the same answer."""
    stored = await withdrawals.request(asked.withdrawal.model_dump(), asked.signature)
    found = withdrawal_out(stored, heads=await withdrawals.heads_now())
    response.headers["Location"] = f"/v1/withdrawals/{found.id}"
    return found


@router.get("/withdrawals")
async def list_withdrawals(
    withdrawals: Withdrawals,
    gate: Gate,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = DEFAULT_PAGE,
    before: Annotated[
        str | None, Query(description="Only withdrawals older than this one.", max_length=64)
    ] = None,
    authorization: ReadHeader = None,
) -> WithdrawalPageOut:
    """List the signing wallet's withdrawals, newest first; read access of scope `balances`."""
    payer = await gate.payer(authorization, scope="balances", now=utc_now())
    start = None if before is None else parse_id(IdPrefix.WITHDRAWAL, before)
    found = await withdrawals.page(payer, before=start, limit=limit + 1)
    heads = await withdrawals.heads_now()
    shown = [withdrawal_out(each, heads=heads) for each in found[:limit]]
    return WithdrawalPageOut(withdrawals=shown, next=shown[-1].id if len(found) > limit else None)


@router.get("/withdrawals/{withdrawal_id}")
async def get_withdrawal(
    withdrawal_id: Annotated[str, Path(description="`wdr_` and a UUID.", max_length=64)],
    withdrawals: Withdrawals,
    gate: Gate,
    authorization: ReadHeader = None,
) -> WithdrawalOut:
    """Show one of the signing wallet's withdrawals; read access of scope `balances`."""
    payer = await gate.payer(authorization, scope="balances", now=utc_now())
    stored = await withdrawals.one(parse_id(IdPrefix.WITHDRAWAL, withdrawal_id), payer=payer)
    return withdrawal_out(stored, heads=await withdrawals.heads_now())


@router.get("/suspense")
async def list_suspense(
    claims: Claims, gate: Gate, authorization: ReadHeader = None
) -> SuspenseListOut:
    """List what the signing wallet sent past its deposits; read access of scope `balances`."""
    payer = await gate.payer(authorization, scope="balances", now=utc_now())
    found = await claims.transfers(payer)
    return SuspenseListOut(transfers=[suspense_out(each) for each in found])


@router.post("/suspense-claims", status_code=202)
async def post_suspense_claim(asked: SuspenseClaimIn, claims: Claims) -> SuspenseOut:
    """Claim a plain transfer, signed by who sent it; the same message gets the same answer."""
    return suspense_out(await claims.request(asked.claim.model_dump(), asked.signature))


def suspense_out(each: PlainTransfer) -> SuspenseOut:
    """Return a plain transfer in wire form."""
    return SuspenseOut(
        id=str(each.id),
        payer=checksum_address(each.payer),
        amount=format_amount(each.amount),
        transaction="0x" + each.transaction.hex(),
        log_index=each.log_index,
        block=each.block_number,
        state=each.state.value,
        next_action=each.next_action(),
    )


def withdrawal_out(stored: StoredWithdrawal, *, heads: Heads | None) -> WithdrawalOut:
    """Return a withdrawal in wire form."""
    return WithdrawalOut(
        id=format_id(IdPrefix.WITHDRAWAL, stored.id),
        state=stored.state.value,
        payer=checksum_address(stored.payer),
        amount=format_amount(stored.amount),
        fee=format_amount(stored.fee),
        digest="0x" + stored.digest.hex(),
        deadline=format_time(stored.deadline),
        requested_at=format_time(stored.requested_at),
        ended_at=format_time(stored.ended_at) if stored.ended_at else None,
        reason=stored.reason,
        next_action=next_action(stored, final_number=heads.finalized if heads else None),
        transactions=[relay_out(each, heads=heads) for each in stored.relays],
    )


def relay_out(relay: Relay, *, heads: Heads | None) -> RelayOut:
    """Return a transaction in wire form."""
    confirmations = None
    if heads is not None and relay.block_number is not None:
        confirmations = max(heads.latest - relay.block_number + 1, 1)
    return RelayOut(
        state=relay.state.value,
        hash=None if relay.hash is None else "0x" + relay.hash.hex(),
        block=relay.block_number,
        confirmations=confirmations,
        reason=relay.last_error,
    )
