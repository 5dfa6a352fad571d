"""HTTP for wallets."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request

from app.kit.clock import utc_now
from app.wallets.read_access import ReadGate
from app.wallets.schemas import BalanceOut
from app.wallets.service import WalletService
from app.wallets.view import balance_out

router = APIRouter(prefix="/v1", tags=["wallets"])

ReadHeader = Annotated[
    str | None,
    Header(
        alias="Authorization",
        description="OffpeakRead <base64url of {access, signature}>, its scope as each route says.",
    ),
]


def wallet_service(request: Request) -> WalletService:
    """Return the service that the application was built with."""
    service = request.app.state.wallets
    assert isinstance(service, WalletService)
    return service


def read_gate(request: Request) -> ReadGate:
    """Return the gate that the application was built with."""
    gate = request.app.state.read_gate
    assert isinstance(gate, ReadGate)
    return gate


@router.get("/balances")
async def get_balances(
    wallets: Annotated[WalletService, Depends(wallet_service)],
    gate: Annotated[ReadGate, Depends(read_gate)],
    authorization: ReadHeader = None,
) -> BalanceOut:
    """Show every bucket of the signing wallet's money, and what to do about each."""
    payer = await gate.payer(authorization, scope="balances", now=utc_now())
    return balance_out(await wallets.balance(payer), payer=payer, asset=wallets.token)
