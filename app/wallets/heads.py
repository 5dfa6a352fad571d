"""How far the chain is, remembered for a moment: many readers, few questions."""

import asyncio
from collections.abc import Callable
from typing import Final

from app.chain.errors import ChainError
from app.chain.rpc import ChainRpc
from app.wallets.balance import Heads

KEEP_SECONDS: Final = 2.0
WAIT_SECONDS: Final = 1.5
"""Longest that a reader of a balance waits for a node; without its answer it is told less."""


class ChainHeads:
    """The latest, safe and finalized block numbers as a node tells them."""

    def __init__(self, rpc: ChainRpc, *, monotonic: Callable[[], float]) -> None:
        """Take where to ask, and a clock in seconds that never goes back."""
        self._rpc = rpc
        self._monotonic = monotonic
        self._asking = asyncio.Lock()
        self._asked_at = -KEEP_SECONDS
        self._heads: Heads | None = None

    async def now(self) -> Heads | None:
        """Return the heads, at most `KEEP_SECONDS` old; None while no node answers in time."""
        async with self._asking:
            if self._monotonic() - self._asked_at >= KEEP_SECONDS:
                self._heads = await self._ask()
                self._asked_at = self._monotonic()
            return self._heads

    async def _ask(self) -> Heads | None:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                found = await asyncio.gather(
                    self._rpc.block("latest"), self._rpc.block("safe"), self._rpc.block("finalized")
                )
        except (TimeoutError, ChainError):
            return None
        latest, safe, finalized = found
        if latest is None or safe is None or finalized is None:
            return None
        return Heads(latest=latest.number, safe=safe.number, finalized=finalized.number)
