"""llama.cpp's HTTP surface: one slot per lease, a strict request, deadlines, confirmed ends."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Protocol

import aiohttp
import msgspec

from supplier_agent.engine.outcome import (
    CanaryFailed,
    Condition,
    Deadlines,
    Delta,
    EngineFailed,
    EngineState,
    Failure,
    Finish,
    Gauge,
    Outcome,
    Speeds,
)
from supplier_agent.engine.sampling import engine_body
from supplier_agent.protocol import (
    Answer,
    AnswerAssembler,
    FailKind,
    InferenceRequest,
    MalformedStream,
    Message,
)
from supplier_agent.release import Release, verify_files

_JSON = {"Content-Type": "application/json"}
_ERROR_BYTES = 500
_POLL_SECONDS = 0.05
_UNREACHABLE = (aiohttp.ClientError, ConnectionError)
_MALFORMED_KINDS: dict[str, FailKind] = {"engine-error": "engine-error", "too-large": "too-large"}


class Host(Protocol):
    """Where the server is: `child.LlamaChild` or `attached.Attached`."""

    async def start(self, *, within: float) -> str:
        """Return the base URL of a server that has its model; raises EngineFailed."""

    async def exited(self) -> str:
        """Wait until it is gone; say how."""

    async def kill(self) -> None:
        """Make sure that it is gone, if it is ours."""


class _Slot(msgspec.Struct, frozen=True):
    id: int
    is_processing: bool


class LlamaCpp:
    """One llama.cpp server and the release it must be serving."""

    def __init__(
        self, host: Host, release: Release, *, weights: Path | None, deadlines: Deadlines
    ) -> None:
        self._host = host
        self._release = release
        self._weights = weights
        self._deadlines = deadlines
        self._url = ""
        self._http: aiohttp.ClientSession | None = None
        self._state = EngineState(Condition.STARTING)
        self._lost = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None
        """Called after each change of `state`."""

    @property
    def state(self) -> EngineState:
        """Whether it can take work, and why not."""
        return self._state

    async def prepare(self) -> None:
        """Check the weights on disk against the release; an attached engine has none here.

        Raises:
            WrongWeights: a file is not the release's.
        """
        if self._weights is not None:
            await asyncio.to_thread(verify_files, self._release, self._weights)

    async def start(self) -> None:
        """Start the server; it is not `ready` before `probe` has passed.

        Raises:
            EngineFailed: it did not come up in time.
        """
        self._become(EngineState(Condition.STARTING))
        self._lost.clear()
        self._url = await self._host.start(within=self._deadlines.start)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._deadlines.connect)
        # A connection for each request: on a kept one the server's close meets our next request,
        # which must not be sent twice.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._http = aiohttp.ClientSession(
            timeout=timeout, connector=connector, auto_decompress=False
        )
        await self._healthy(self._http)

    async def probe(self) -> Speeds:
        """Generate one token, then the canary; return the speeds it showed and become ready.

        Raises:
            EngineFailed: no answer.
            CanaryFailed: another answer than the release's.
        """
        one = Message(role="user", content="Hi")
        await self._ask(self._canary_request((one,), max_output_tokens=1))
        canary = self._release.canary
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer, first = await self._ask(
            self._canary_request(canary.messages, max_output_tokens=canary.max_output_tokens)
        )
        ended = loop.time()
        if answer.content != canary.answer:
            raise CanaryFailed(expected=canary.answer, found=answer.content[:200])
        self._become(EngineState(Condition.READY))
        return Speeds(
            prefill=answer.usage.input_tokens / max(first - began, 1e-3),
            decode=max(answer.usage.output_tokens - 1, 1) / max(ended - first, 1e-3),
        )

    async def slots(self) -> Gauge:
        """Return the server's own view of its slots.

        Raises:
            EngineFailed: it does not say within the connect deadline.
        """
        if self._http is None:
            raise EngineFailed("no gauge", self._state.reason)
        try:
            async with (
                asyncio.timeout(self._deadlines.connect),
                self._http.get(f"{self._url}/slots") as response,
            ):
                slots = msgspec.json.decode(await response.read(), type=list[_Slot])
        except (*_UNREACHABLE, TimeoutError, msgspec.DecodeError) as error:
            raise EngineFailed("no gauge", str(error)) from error
        return Gauge(len(slots), frozenset(slot.id for slot in slots if slot.is_processing))

    async def infer(
        self, request: InferenceRequest, *, slot: int, ends_at: float
    ) -> AsyncGenerator[Outcome, None]:
        """Yield `Delta`s and then one `Finish` or `Failure`.

        `ends_at` is the lease's end on the loop's clock. Closing the iterator early closes the
        connection; the slot is free once `free` has returned.
        """
        if self._http is None:
            yield Failure("engine-lost", self._state.reason)
            return
        body = engine_body(request, slot=slot, defaults=self._release.sampling)
        limit = _Limit(self._deadlines, ends_at)
        response: aiohttp.ClientResponse | None = None
        try:
            async with asyncio.timeout_at(limit.at):
                response = await self._http.post(
                    f"{self._url}/v1/chat/completions", data=body, headers=_JSON
                )
                refusal = await _refusal(response)
            if refusal is not None:
                yield refusal
                return
            assembler = AnswerAssembler(max_output_tokens=request.max_output_tokens)
            while piece := await _next_piece(response, assembler, limit):
                yield Delta(piece)
            yield Finish(assembler.finish())
        except TimeoutError:
            yield limit.failure()
        except MalformedStream as error:
            yield Failure(_MALFORMED_KINDS.get(error.reason, "malformed-stream"), str(error))
        except _UNREACHABLE as error:
            yield Failure("engine-lost", str(error) or type(error).__name__)
        finally:
            if response is not None:
                response.close()

    async def free(self, slot: int) -> None:
        """Return once the engine's gauge says that the slot is idle, or the engine is dead.

        A gauge that never agrees means a leaked slot or a frozen engine: it becomes `stalled`.
        """
        deadline = asyncio.get_running_loop().time() + self._deadlines.confirm
        while self._state.condition in (Condition.READY, Condition.STARTING):
            with contextlib.suppress(EngineFailed):
                if slot not in (await self.slots()).busy:
                    return
            if asyncio.get_running_loop().time() > deadline:
                self._become(EngineState(Condition.STALLED, f"slot {slot} was never freed"))
                self._lost.set()
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def lost(self) -> str:
        """Wait until the engine is dead or stalled; return why."""
        exited = asyncio.create_task(self._host.exited())
        stalled = asyncio.create_task(self._lost.wait())
        try:
            await asyncio.wait((exited, stalled), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stalled.cancel()
            if not exited.done():
                exited.cancel()
        if exited.done() and not exited.cancelled():
            self._become(EngineState(Condition.DEAD, exited.result()))
        return self._state.reason

    async def stop(self, reason: str = "stopped") -> None:
        """End the server, if it is ours, and every connection to it."""
        self._become(EngineState(Condition.DEAD, reason))
        if self._http is not None:
            await self._http.close()
            self._http = None
        await self._host.kill()

    async def _healthy(self, http: aiohttp.ClientSession) -> None:
        """Wait for the server's word that it is loaded: it listens before that."""
        found = "no answer"
        try:
            async with asyncio.timeout(self._deadlines.start):
                while found != "200":
                    with contextlib.suppress(*_UNREACHABLE):
                        async with http.get(f"{self._url}/health") as response:
                            found = str(response.status)
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            raise EngineFailed("not healthy in time", found) from error

    async def _ask(self, request: InferenceRequest) -> tuple[Answer, float]:
        """The whole answer and when its first bytes came."""
        loop = asyncio.get_running_loop()
        first: float | None = None
        ends_at = loop.time() + self._deadlines.start
        async for outcome in self.infer(request, slot=0, ends_at=ends_at):
            match outcome:
                case Delta():
                    first = first or loop.time()
                case Finish(answer):
                    return answer, first or loop.time()
                case Failure(kind, detail):
                    raise EngineFailed(f"probe: {kind}", detail)
        raise EngineFailed("probe: no outcome")

    def _canary_request(
        self, messages: tuple[Message, ...], *, max_output_tokens: int
    ) -> InferenceRequest:
        return InferenceRequest(
            model=self._release.id,
            messages=list(messages),
            max_output_tokens=max_output_tokens,
            temperature=0.0,
            seed=0,
        )

    def _become(self, state: EngineState) -> None:
        self._state = state
        self.on_change()


class _Limit:
    """The next instant, on the loop's clock, at which a stream is too late."""

    def __init__(self, deadlines: Deadlines, ends_at: float) -> None:
        self._deadlines = deadlines
        self._ends_at = ends_at
        self._waits_for = "the first token"
        self._next = asyncio.get_running_loop().time() + deadlines.first_token

    @property
    def at(self) -> float:
        return min(self._next, self._ends_at)

    def progress(self) -> None:
        """Text has come."""
        self._waits_for = "the next token"
        self._next = asyncio.get_running_loop().time() + self._deadlines.between_tokens

    def failure(self) -> Failure:
        if self._ends_at <= self._next:
            return Failure("lease-ended", f"while waiting for {self._waits_for}")
        return Failure("timed-out", f"waiting for {self._waits_for}")


async def _next_piece(
    response: aiohttp.ClientResponse, assembler: AnswerAssembler, limit: _Limit
) -> bytes:
    """The bytes that have come, checked; empty after `[DONE]` or at the stream's end.

    Only text moves the deadline: an engine that sends nothing but comments is silent.
    """
    if assembler.is_done:
        return b""
    async with asyncio.timeout_at(limit.at):
        piece = await response.content.readany()
    if assembler.feed(piece):
        limit.progress()
    return piece


async def _refusal(response: aiohttp.ClientResponse) -> Failure | None:
    status = response.status
    if status == 200:
        return None
    text = (await response.content.read(_ERROR_BYTES)).decode(errors="replace")
    if status in (429, 503):
        return Failure("engine-busy", f"{status} {text}")
    if 400 <= status < 500:
        return Failure("bad-request", f"{status} {text}")
    return Failure("engine-error", f"{status} {text}")
