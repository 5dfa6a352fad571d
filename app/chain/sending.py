"""One transaction sent and waited for, by somebody who looks on: commands, deployment, tests.

Not for the worker: nothing is stored before it is sent. The treasury's sender is another matter.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import rlp

from app.chain.blocks import TransactionReceipt
from app.chain.errors import (
    RpcUnavailable,
    TransactionPending,
    TransactionRefused,
    TransactionReverted,
)
from app.chain.fees import first_fees
from app.chain.keys import ChainKey
from app.chain.rpc import CallRequest, ChainRpc
from app.chain.transaction import SignedTransaction, Transaction
from ledger.encoding import Address
from ledger.hashing import keccak256

GAS_MARGIN: Final = 5
"""One fifth more gas than estimated: state may change until the transaction is mined."""
_POLL_SECONDS: Final = 0.25
_TAKEN: Final = frozenset({"accepted", "already-known"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What to send: to whom (None: create a contract), call data, native coins in wei."""

    to: Address | None
    data: bytes
    value: int = 0


async def prepare(rpc: ChainRpc, sender: Address, outgoing: Outgoing) -> Transaction:
    """The transaction at the sender's next nonce, with gas and fees of now.

    Raises:
        RpcRefused: it would revert. RpcUnavailable
    """
    call = CallRequest(
        to=outgoing.to, data=outgoing.data, sender=sender, value=outgoing.value, gas=None
    )
    gas = await rpc.estimate_gas(call)
    fees = first_fees(await rpc.fees())
    return Transaction(
        chain_id=await rpc.chain_id(),
        nonce=await rpc.transaction_count(sender, "pending"),
        to=outgoing.to,
        data=outgoing.data,
        gas=gas + gas // GAS_MARGIN,
        max_fee=fees.max_fee,
        priority_fee=fees.priority_fee,
        value=outgoing.value,
    )


async def send_and_wait(
    rpc: ChainRpc, key: ChainKey, transaction: Transaction, *, wait_seconds: float
) -> TransactionReceipt:
    """The receipt of a transaction that was mined and did not revert.

    Raises:
        TransactionRefused: no node took it. TransactionReverted: it was mined and reverted.
        TransactionPending: not mined in time; it may still be. KeyRefused
        RpcUnavailable: nobody answered when it was sent; it may have been sent all the same.
    """
    signed = await key.sign(transaction)
    sent = await rpc.send_raw(signed.raw)
    if sent.outcome not in _TAKEN:
        raise TransactionRefused(sent.hash, outcome=sent.outcome, detail=sent.detail)
    return await _mined(rpc, signed, wait_seconds)


async def _mined(
    rpc: ChainRpc, signed: SignedTransaction, wait_seconds: float
) -> TransactionReceipt:
    try:
        async with asyncio.timeout(wait_seconds):
            while (receipt := await _receipt(rpc, signed.hash)) is None:  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)  # nodes do not call back
    except TimeoutError:
        raise TransactionPending(signed.hash, wait_seconds=wait_seconds) from None
    if not receipt.succeeded:
        raise TransactionReverted(signed.hash)
    return receipt


async def _receipt(rpc: ChainRpc, transaction: bytes) -> TransactionReceipt | None:
    try:
        return await rpc.receipt(transaction)
    except RpcUnavailable:
        return None  # it is sent: only waiting longer can tell


def created_address(sender: Address, nonce: int) -> Address:
    """Where a transaction of `sender` creates its contract (yellow paper, section 7)."""
    named = rlp.encode([bytes.fromhex(sender[2:]), nonce])
    return Address("0x" + keccak256(named)[12:].hex())
