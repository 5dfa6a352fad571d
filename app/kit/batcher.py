"""One call for many waiting items, without a timer.

A call starts when none is in flight; whatever arrives meanwhile is the next batch. So a lone item
waits for nothing and a crowd shares the cost of a transaction (measured on two shared cores: 6.8
thousand lifecycles a second against 1.1 thousand one by one; `design/bars.md`, `make bench`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.kit.errors import Busy, DatabaseUnavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")

BACKOFF_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much one batcher takes on."""

    batch_size: int = 200
    queue_length: int = 2_000
    concurrent_calls: int = 1
    retries: int = 5
    wait_seconds: float = 20.0
    """The longest that one submitter waits for its answer."""


@dataclass(slots=True)
class Waiting(Generic[Item, Answer]):
    """An item and the future of whoever waits for its answer."""

    item: Item
    answer: asyncio.Future[Answer]


class Batcher(Generic[Item, Answer]):
    """Gives items to `call` in batches and hands each submitter its own answer."""

    def __init__(
        self,
        call: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        *,
        retryable: Callable[[Exception], bool],
        unknown: Callable[[Exception], bool] = lambda _: False,
        limits: BatchLimits | None = None,
    ) -> None:
        """Take the call and the rule for what may simply be tried again.

        Args:
            call: Decides all its items or raises having done nothing; returns one answer per
                item in the same order. It must be idempotent per item: after an exception the
                items are given to it again, one by one.
            retryable: True for failures that mean "not done, try again" (deadlock,
                serialization): the whole call is repeated.
            unknown: True for failures that do not say whether the call was done (a lost
                connection): it is repeated once, of whatever size, which finds out. After both
                kinds the items are not tried one by one: all would meet the same.
            limits: Sizes; the defaults suit one Postgres.
        """
        self._call = call
        self._retryable = retryable
        self._unknown = unknown
        self._limits = limits or BatchLimits()
        self._queue: deque[Waiting[Item, Answer]] = deque()
        self._runners: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def queued(self) -> int:
        """Items not yet given to a call."""
        return len(self._queue)

    async def submit(self, item: Item) -> Answer:
        """Return this item's answer.

        The item of a cancelled submitter is skipped if it is not yet in a call (its future is
        done); one already in a call is decided, and its answer dropped.

        Raises:
            Busy: the queue is full or the batcher is draining; the item was not taken.
            DatabaseUnavailable: no answer within `wait_seconds`; it may be decided later.
            Exception: what the call raised for this item alone.
        """
        if self._closed or len(self._queue) >= self._limits.queue_length:
            raise Busy(queued=len(self._queue))
        waiting: Waiting[Item, Answer] = Waiting(item, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if len(self._runners) < self._limits.concurrent_calls:
            self._runners.add(asyncio.create_task(self._run()))
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                return await waiting.answer
        except TimeoutError:
            raise DatabaseUnavailable("no answer in time") from None

    async def drain(self) -> None:
        """Refuse new items and return when every item already taken has its answer."""
        self._closed = True
        while self._runners:
            await asyncio.wait(self._runners)

    async def _run(self) -> None:
        """Take batches until none waits.

        The runner leaves the set in the same step in which it finds the queue empty. A done
        callback would come later, after the last answer's waiter may have submitted again: it
        would see a runner that takes nothing any more, and wait for ever.
        """
        try:
            while batch := self._next_batch():
                await self._decide(batch)
        finally:
            runner = asyncio.current_task()
            assert runner is not None
            self._runners.discard(runner)

    def _next_batch(self) -> list[Waiting[Item, Answer]]:
        batch: list[Waiting[Item, Answer]] = []
        while self._queue and len(batch) < self._limits.batch_size:
            waiting = self._queue.popleft()
            if not waiting.answer.done():
                batch.append(waiting)
        return batch

    async def _decide(self, batch: Sequence[Waiting[Item, Answer]]) -> None:
        """Answer every item of the batch; one bad item does not fail its neighbours."""
        try:
            answers = await self._call_with_retries([waiting.item for waiting in batch])
        except Exception as error:  # noqa: BLE001 -- handed to whoever waits for the item
            if len(batch) > 1 and not self._retryable(error) and not self._unknown(error):
                for waiting in batch:
                    await self._decide([waiting])
                return
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
            return
        for waiting, answer in zip(batch, answers, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    async def _call_with_retries(self, items: Sequence[Item]) -> Sequence[Answer]:
        attempt, was_unknown = 0, False
        while True:
            try:
                answers = await self._call(items)
            except Exception as error:
                again = self._unknown(error) and not was_unknown
                was_unknown |= again
                if not again and (attempt == self._limits.retries or not self._retryable(error)):
                    raise
                await asyncio.sleep(BACKOFF_SECONDS * 2**attempt)
                attempt += 1
            else:
                assert len(answers) == len(items)
                return answers
