"""What the chain shows of a key and its transactions, read so that nothing is taken for a no."""

from dataclasses import dataclass

from app.chain.blocks import BlockId
from app.chain.errors import RpcUnavailable
from app.chain.fees import Fees, capped, first_fees
from app.chain.rpc import ChainRpc
from app.treasury.errors import FinalBlockUnknown
from app.treasury.transaction import Inclusion, Sight, StoredTransaction
from ledger.encoding import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySight:
    """A sender's account at the latest and at the finalized block."""

    nonce_latest: int
    nonce_final: int
    final_number: int
    fees: Fees


async def look_at_key(rpc: ChainRpc, sender: Address, *, fee_cap: int) -> KeySight:
    """Return the account's counts and the fees of a new transaction.

    Read before any receipt is asked for: a transaction that is mined in between has its receipt
    by then, so a used nonce never looks like a stranger's.

    Raises:
        RpcUnavailable, FinalBlockUnknown
    """
    final = await rpc.block("finalized")
    if final is None:
        raise FinalBlockUnknown
    nonce_final = await rpc.transaction_count(sender, final.hash)
    nonce_latest = await rpc.transaction_count(sender, "latest")
    return KeySight(
        nonce_latest=max(nonce_latest, nonce_final),  # one URL may lag behind another
        nonce_final=nonce_final,
        final_number=final.number,
        fees=capped(first_fees(await rpc.fees()), cap=fee_cap),
    )


async def look_at(rpc: ChainRpc, tx: StoredTransaction, key: KeySight) -> Sight:
    """Return what the chain shows of a transaction.

    Raises:
        RpcUnavailable
    """
    inclusion = await find_inclusion(rpc, tx)
    gone = False
    if inclusion is None and tx.mined is not None:
        gone = await is_gone(rpc, tx.mined)
    return Sight(
        inclusion=inclusion,
        replaced_block=gone,
        nonce_latest=key.nonce_latest,
        nonce_final=key.nonce_final,
        final_number=key.final_number,
        fees=key.fees,
    )


async def find_inclusion(rpc: ChainRpc, tx: StoredTransaction) -> Inclusion | None:
    """Return the receipt of any attempt whose block is the one at its height, newest first.

    Raises:
        RpcUnavailable
    """
    for attempt in reversed(tx.attempts):
        receipt = await rpc.receipt(attempt.hash)
        if receipt is None:
            continue
        header = await rpc.block(receipt.block_number)
        if header is not None and header.hash == receipt.block_hash:
            place = BlockId(receipt.block_number, receipt.block_hash)
            return Inclusion(attempt.hash, place, succeeded=receipt.succeeded)
    return None


async def is_gone(rpc: ChainRpc, place: BlockId) -> bool:
    """Return whether a block is proved not to be in the chain.

    One URL shows another block at its height, and none shows the block itself.
    """
    another = False
    for one in rpc.by_url():
        try:
            header = await one.block(place.number)
        except RpcUnavailable:
            continue
        if header is not None and header.hash == place.hash:
            return False
        another = another or header is not None
    return another
