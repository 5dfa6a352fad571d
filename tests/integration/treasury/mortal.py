"""A worker in a process of its own that is killed at a step: real processes, SIGKILL, no clean-up.

Every step is a boundary: before and after each call of the database or of a node that changes
something. `kill_at` counts them; a worker that comes through all of its rounds ends with 0.
"""

import asyncio
import functools
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from app.chain.rpc import ChainRpc, open_rpc
from app.db.engine import TREASURY_ROLE, open_database
from app.treasury.transaction_repository import TransactionRepository
from ledger.encoding import Address
from tests.chain import FINAL_BLOCKS
from tests.integration.treasury.house import operator_sender, withdrawal_loop

WRITES = ("enqueue", "sign", "add_attempt", "note_broadcast", "mine", "unmine", "finish")


@dataclass(frozen=True)
class Death:
    """When a worker dies: at a boundary by itself, counted from 0; None: whenever it is told."""

    at: int | None


@dataclass(frozen=True)
class Post:
    """Where a worker works."""

    database_url: str
    rpc_url: str
    treasury: Address


def mortal_worker(post: Post, rounds: int, death: Death) -> None:
    """Run rounds as a worker does, and die at the boundary."""
    steps = count()

    def boundary() -> None:
        if next(steps) == death.at:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in WRITES:
        watch(TransactionRepository, name, boundary)
    watch(ChainRpc, "send_raw", boundary)
    asyncio.run(_work(post, rounds))


def watch(owner: type, name: str, boundary: Callable[[], None]) -> None:
    """Put a boundary before and after a method."""
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    @functools.wraps(method)
    async def watched(*given: Any, **named: Any) -> Any:
        boundary()
        result = await method(*given, **named)
        boundary()
        return result

    setattr(owner, name, watched)


async def _work(post: Post, rounds: int) -> None:
    database = open_database(post.database_url, pool_size=4, role=TREASURY_ROLE)
    async with open_rpc([post.rpc_url]) as rpc:
        withdrawals = withdrawal_loop(database, rpc, post.treasury)
        sender = operator_sender(database, rpc)
        for _ in range(rounds):
            await withdrawals.run_once()
            await sender.run_once()
            await rpc.endpoints[0].ask("anvil_mine", [hex(FINAL_BLOCKS)])
    await database.dispose()
