"""Reading the chain for a watcher: heads by endpoint, and ranges of blocks that belong together."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from app.chain.blocks import Block, BlockRef
from app.chain.contracts import AnchorContract, TokenContract, TreasuryContract
from app.chain.errors import ChainError, RpcUnavailable
from app.chain.events import Transfer
from app.chain.rpc import ChainRpc
from app.kit.clock import from_unix_seconds, unix_seconds
from app.treasury.errors import ChainMoved, EndpointsDisagree
from app.treasury.events import LogPlace, OurContracts, SeenEvent, read_events
from app.treasury.watching import ChainSums, EndpointHeads, Outlook, choose
from ledger.encoding import Address

HEADERS_AT_ONCE: Final = 8

Said = TypeVar("Said")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One endpoint's reading of a range of blocks."""

    events: list[SeenEvent]
    of_deposits: Collection[LogPlace]
    """Transfers that deposits account for."""
    mined_at: Mapping[bytes, datetime]
    """Times of the blocks that hold events that were not known before, by hash."""


async def look_out(rpc: ChainRpc, *, turn: int, now: datetime) -> tuple[ChainRpc, Outlook]:
    """Return the endpoint to read in this round, alone, and how deep the chain is.

    Raises:
        RpcUnavailable: no endpoint names all three heads.
        EndpointsDisagree: two show different blocks at a depth that counts.
    """
    answers = await asyncio.gather(*(_heads(one) for one in rpc.by_url()))
    seen = [(one, heads) for one, heads in zip(rpc.by_url(), answers, strict=True) if heads]
    if not seen:
        raise RpcUnavailable("eth_getBlockByNumber", ["no endpoint names its heads"])
    outlook = choose([heads for _, heads in seen], turn=turn, now=unix_seconds(now))
    for block in {outlook.safe, outlook.finalized}:
        for one, heads in seen:
            if block in {heads.safe, heads.finalized}:
                continue
            shown = await _block_or_none(one, block.number)
            if shown is not None and shown.hash != block.hash:
                raise EndpointsDisagree(number=block.number)
    return seen[outlook.reader][0], outlook


async def _heads(one: ChainRpc) -> EndpointHeads | None:
    """Return an endpoint's heads, None when it does not name them all."""
    finalized = await _block_or_none(one, "finalized")
    safe = await _block_or_none(one, "safe")
    latest = await _block_or_none(one, "latest")
    if latest is None or safe is None or finalized is None:
        return None
    return EndpointHeads(latest=latest, safe=safe, finalized=finalized)


async def _block_or_none(one: ChainRpc, block: BlockRef) -> Block | None:
    try:
        return await one.block(block)
    except RpcUnavailable:
        return None


async def read_range(
    rpc: ChainRpc, ours: OurContracts, first: int, last: int, *, known: Collection[LogPlace]
) -> Reading:
    """Return every event of our contracts in blocks first .. last.

    The last block is asked for before and after the logs, and each block with events that are not
    `known` once: all of it is of one chain, or the reading is given up.

    Raises:
        ChainMoved: the chain was reorganized between the reads, or the endpoint lags.
        RpcUnavailable: a part of it could not be had.
        MalformedAnswer: a log is not what its topic says.
    """
    end = await _header(rpc, last)
    logs = await rpc.logs([ours.treasury, ours.anchor], first, last)
    to_us = (Transfer.EVENT.topic, None, bytes(12) + bytes.fromhex(ours.treasury[2:]))
    logs += await rpc.logs([ours.token], first, last, to_us)
    seen = read_events(logs, ours)
    new = [event.place for event in seen.events if event.place not in known]
    asked = list({place.block_hash: place.block_number for place in new}.items())
    mined_at: dict[bytes, datetime] = {}
    for start in range(0, len(asked), HEADERS_AT_ONCE):
        some = asked[start : start + HEADERS_AT_ONCE]
        headers = await asyncio.gather(*(_header(rpc, number) for _, number in some))
        for (block, number), header in zip(some, headers, strict=True):
            if header.hash != block:
                raise ChainMoved(number=number)
            mined_at[block] = from_unix_seconds(header.timestamp)
    if (await _header(rpc, last)).hash != end.hash:
        raise ChainMoved(number=last)
    return Reading(events=seen.events, of_deposits=seen.of_deposits, mined_at=mined_at)


async def _header(rpc: ChainRpc, number: int) -> Block:
    found = await rpc.block(number)
    if found is None:
        raise ChainMoved(number=number)
    return found


async def event_counts(rpc: ChainRpc, ours: OurContracts, block: Block) -> set[int]:
    """Return how many events the treasury had emitted in the state after a block, by everybody.

    Raises:
        RpcUnavailable: nobody has that state.
    """

    async def ask(one: ChainRpc) -> int:
        return await TreasuryContract(one, ours.treasury).event_count(block.hash)

    return await _said(rpc, ask)


async def chain_sums(rpc: ChainRpc, ours: OurContracts, block: Block) -> set[ChainSums]:
    """Return what the contracts say in the state after a block, by every endpoint that has it.

    Raises:
        RpcUnavailable: nobody has that state.
    """

    async def ask(one: ChainRpc) -> ChainSums:
        treasury = TreasuryContract(one, ours.treasury)
        return ChainSums(
            counted=await treasury.event_count(block.hash),
            tokens=await TokenContract(one, ours.token).balance_of(ours.treasury, block.hash),
            liability=await treasury.total_liability(block.hash),
            earned=await treasury.earned(block.hash),
            anchored=await AnchorContract(one, ours.anchor).size(block.hash),
        )

    return await _said(rpc, ask)


async def credited_to(rpc: ChainRpc, ours: OurContracts, wallet: Address, block: Block) -> set[int]:
    """Return what the treasury ever credited to a wallet, as `chain_sums` does.

    Raises:
        RpcUnavailable: nobody has that state.
    """

    async def ask(one: ChainRpc) -> int:
        return (await TreasuryContract(one, ours.treasury).account(wallet, block.hash)).deposited

    return await _said(rpc, ask)


async def _said(rpc: ChainRpc, ask: Callable[[ChainRpc], Awaitable[Said]]) -> set[Said]:
    """Return the different answers of the endpoints; one that gives none counts for nothing."""
    answers = await asyncio.gather(*map(ask, rpc.by_url()), return_exceptions=True)
    said: set[Said] = set()
    for answer in answers:
        if not isinstance(answer, BaseException):
            said.add(answer)
        elif not isinstance(answer, ChainError):
            raise answer
    if not said:
        raise RpcUnavailable("eth_call", [str(answer) for answer in answers])
    return said
