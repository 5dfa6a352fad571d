"""What one deployment runs and keeps: from RUN to the frames that answer it.

Works on without a session: frames go to the outbox of the session there is, and everything not
yet settled is sent again into the next one.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final

import structlog

from ledger.commitment import request_digest
from supplier_agent.engine.llamacpp import LlamaCpp
from supplier_agent.engine.outcome import Condition, Delta, Failure, Finish
from supplier_agent.metering import Meter
from supplier_agent.outbox import Outbox
from supplier_agent.protocol import (
    Accept,
    BadFrame,
    Busy,
    Cancelled,
    Done,
    Fail,
    FailKind,
    First,
    InferenceRequest,
    Run,
    decode_request,
    stream_limit_bytes,
)
from supplier_agent.slots import LeaseState, NoSlot, SlotTable

SLOT_WAIT_SECONDS: Final = 1.5
"""How long a RUN waits for a slot that is being freed; the gateway wants an answer within 2 s."""
_DETAIL_CHARACTERS: Final = 500

_log = structlog.get_logger("offpeak.work")


@dataclass(frozen=True, slots=True)
class Offer:
    """What this deployment says that it serves."""

    deployment: str
    release: str
    slots: int


@dataclass(slots=True)
class _Work:
    """One lease: what it asked, what has come, how it ended."""

    run: Run
    request: InferenceRequest
    slot: int
    pieces: list[bytes] = field(default_factory=list)
    ending: Done | Fail | Cancelled | None = None
    streaming: asyncio.Task[Finish | Failure] | None = None
    stopped_by: Fail | Cancelled | None = None

    @property
    def stream_bytes(self) -> int:
        return sum(map(len, self.pieces))


class Workbench:
    """The slots of one engine and the leases on them."""

    def __init__(self, offer: Offer, engine: LlamaCpp, table: SlotTable, meter: Meter) -> None:
        self._offer = offer
        self._engine = engine
        self._table = table
        self._meter = meter
        self._works: dict[str, _Work] = {}
        self._outbox: Outbox | None = None
        self._waiting: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slot_freed = asyncio.Event()
        self._changed = asyncio.Event()
        self._closing = False

    @property
    def offered(self) -> int:
        """Slots on offer now: all of them or, while the engine cannot serve, none."""
        ready = self._engine.state.condition is Condition.READY and not self._closing
        return self._offer.slots if ready else 0

    @property
    def held(self) -> tuple[str, ...]:
        """Leases that a HELLO lists."""
        return self._table.held

    def attach(self, outbox: Outbox) -> None:
        """Use this session from now on, and send all that is not settled into it again."""
        self._outbox = outbox
        held = set(self._table.held)
        for work in self._works.values():
            if work.run.lease not in held:
                continue
            if work.pieces:
                outbox.send_after(work.run.lease, First(lease=work.run.lease))
            for piece in work.pieces:
                outbox.send_data(work.run.lease, piece)
            if work.ending is not None:
                outbox.send_after(work.run.lease, work.ending)

    def detach(self) -> None:
        """The session is gone; keep working, but start nothing: no HELLO lists what only waits."""
        self._outbox = None
        self._waiting.clear()

    def run(self, run: Run) -> None:
        """Start a job, or answer BUSY or FAIL. A repeated RUN is accepted again, not run again."""
        if self._table.state(run.lease) is not None:
            self._send(Accept(lease=run.lease))
            return
        if run.lease in self._waiting:
            return
        try:
            request = self._check(run)
        except BadFrame as error:
            self._send(_fail(run.lease, "bad-request", str(error), retryable=False))
            return
        if (run.deployment, run.release) != (self._offer.deployment, self._offer.release):
            self._send(_fail(run.lease, "wrong-release", run.release, retryable=True))
            return
        self._spawn(run, request)

    def cancel(self, lease: str) -> None:
        """Stop a lease's stream, or its wait for a slot. One that has ended keeps its ending."""
        self._waiting.discard(lease)
        self._stop(lease, Cancelled(lease=lease, stream_bytes=0))

    def settle(self, lease: str) -> None:
        """Forget a lease; if it still runs, stop it and say nothing."""
        self._waiting.discard(lease)
        self._table.settle(lease)
        self._stop(lease, Cancelled(lease=lease, stream_bytes=0))
        if self._table.state(lease) is None:
            self._works.pop(lease, None)
        if self._outbox is not None:
            self._outbox.forget(lease)
        self._changed.set()

    def expire(self) -> None:
        """Forget results that nobody settled in time."""
        for lease in self._table.expire(asyncio.get_running_loop().time()):
            self._works.pop(lease, None)
            _log.warning("result never settled", lease=lease)
        self._changed.set()

    async def close(self, *, within: float) -> None:
        """Take no more work; return when all is ended and settled, or stopped after `within` s."""
        self._closing = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._works:
                    self._changed.clear()
                    await self._changed.wait()
        for lease in tuple(self._works):
            self._stop(lease, _fail(lease, "stopping", "the agent exits", retryable=True))
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _check(self, run: Run) -> InferenceRequest:
        """The request, once it is the one whose digest we are to sign."""
        canonical = bytes(run.request)
        request = decode_request(canonical)
        if request.max_output_tokens != run.max_output_tokens:
            raise BadFrame("max_output_tokens of RUN and request differ")
        digest = request_digest(bytes.fromhex(run.salt), canonical)
        if digest.hex() != run.request_digest:
            raise BadFrame("the request is not the one its digest names")
        return request

    def _spawn(self, run: Run, request: InferenceRequest) -> None:
        self._waiting.add(run.lease)
        task = asyncio.create_task(self._serve(run, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, run: Run, request: InferenceRequest) -> None:
        """One lease from slot to ending."""
        received = asyncio.get_running_loop().time()
        try:
            slot = await self._take(run, received)
        except NoSlot as error:
            self._send(Busy(lease=run.lease, detail=error.reason[:_DETAIL_CHARACTERS]))
            return
        finally:
            self._waiting.discard(run.lease)
        work = _Work(run, request, slot)
        self._works[run.lease] = work
        self._send(Accept(lease=run.lease))
        work.streaming = asyncio.create_task(self._stream(work))
        await asyncio.wait((work.streaming,))
        await self._end(work)

    async def _take(self, run: Run, received: float) -> int:
        """A slot for the lease, waiting for one that is being freed."""
        loop = asyncio.get_running_loop()
        while True:
            if run.lease not in self._waiting:
                raise NoSlot("cancelled before it started")
            if self.offered == 0:
                state = self._engine.state
                raise NoSlot("stopping" if self._closing else f"{state.condition} {state.reason}")
            try:
                return self._table.take(
                    run.lease,
                    now=received,
                    remaining_seconds=run.remaining_seconds,
                    ceiling_bytes=stream_limit_bytes(run.max_output_tokens),
                )
            except NoSlot:
                left = received + SLOT_WAIT_SECONDS - loop.time()
                if left <= 0 or not self._table.is_freeing:
                    raise
            self._slot_freed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._slot_freed.wait(), left)

    async def _stream(self, work: _Work) -> Finish | Failure:
        """Read the engine's stream to its end, passing on what comes."""
        lease = work.run.lease
        outcomes = self._engine.infer(
            work.request, slot=work.slot, ends_at=self._table.ends_at(lease)
        )
        async with contextlib.aclosing(outcomes):
            async for outcome in outcomes:
                if not isinstance(outcome, Delta):
                    return outcome
                if not work.pieces:
                    self._send_after(First(lease=lease))
                work.pieces.append(outcome.data)
                if self._outbox is not None:
                    self._outbox.send_data(lease, outcome.data)
        raise AssertionError

    async def _end(self, work: _Work) -> None:
        """Report the ending; free the slot, confirmed by the engine unless the stream was whole."""
        lease = work.run.lease
        ending = self._ending(work)
        if isinstance(ending, Fail):
            work.pieces.clear()
            self._conclude(work, ending)
        if not isinstance(ending, Done):
            self._table.stop(lease)
            await self._engine.free(work.slot)
        self._table.end(lease, kept_bytes=work.stream_bytes)
        self._slot_freed.set()
        if self._table.state(lease) is None:
            self._works.pop(lease, None)
        elif not isinstance(ending, Fail):
            self._conclude(work, ending)
        self._changed.set()

    def _ending(self, work: _Work) -> Done | Fail | Cancelled:
        assert work.streaming is not None
        if work.streaming.cancelled():
            match work.stopped_by:
                case Fail() as fail:
                    return fail
                case _:
                    return Cancelled(lease=work.run.lease, stream_bytes=work.stream_bytes)
        if (error := work.streaming.exception()) is not None:
            _log.error("attempt broke", lease=work.run.lease, exc_info=error)
            return _fail(work.run.lease, "engine-error", type(error).__name__, retryable=True)
        match work.streaming.result():
            case Finish(answer):
                return self._meter.done(work.run, answer, stream_bytes=work.stream_bytes)
            case Failure(kind, detail) as failure:
                # not its detail: engines quote the prompt in it, broken streams the answer
                _log.warning("attempt failed", lease=work.run.lease, kind=kind)
                return _fail(work.run.lease, kind, detail, retryable=failure.retryable)

    def _conclude(self, work: _Work, ending: Done | Fail | Cancelled) -> None:
        work.ending = ending
        if work.run.lease in self._table.held:
            self._send_after(ending)

    def _stop(self, lease: str, ending: Fail | Cancelled) -> None:
        work = self._works.get(lease)
        if work is None or work.streaming is None or work.stopped_by is not None:
            return
        if self._table.state(lease) is LeaseState.RUNNING:
            work.stopped_by = ending
            work.streaming.cancel()

    def _send(self, message: Accept | Busy | Fail) -> None:
        if self._outbox is not None:
            self._outbox.send(message)

    def _send_after(self, message: First | Done | Fail | Cancelled) -> None:
        if self._outbox is not None:
            self._outbox.send_after(message.lease, message)


def _fail(lease: str, kind: FailKind, detail: str, *, retryable: bool) -> Fail:
    return Fail(lease=lease, kind=kind, retryable=retryable, detail=detail[:_DETAIL_CHARACTERS])
