"""The agent: one engine, one deployment, one session at a time, until it is told to stop."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import structlog
from websockets.exceptions import WebSocketException

from supplier_agent.engine.keeper import keep
from supplier_agent.engine.llamacpp import LlamaCpp
from supplier_agent.engine.outcome import Speeds
from supplier_agent.errors import AgentError
from supplier_agent.protocol import Capacity, ProtocolError
from supplier_agent.session import Caller, Session
from supplier_agent.workbench import Workbench

FIRST_PAUSE_SECONDS: Final = 0.2
LAST_PAUSE_SECONDS: Final = 30.0
HOLDING_PAUSE_SECONDS: Final = 2.0
"""The longest pause while leases are held: nobody else has them, and 20 s are all they may have."""
_EXPIRE_SECONDS: Final = 1.0

_log = structlog.get_logger("offpeak.agent")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the owner offers, apart from how fast and how much: see `protocol.Capacity`."""

    deployment: str
    release: str
    release_fingerprint: str
    capacity_class: Literal["flexible", "reclaimable"]
    region: str
    ask_nano_per_slot_second: int
    offer_seconds: int = 3600
    """Each CAPACITY offers for this long from now; it is repeated long before."""
    drain_seconds: float = 30.0
    """After `stop`, running jobs and unsettled results get this long."""


class Agent:
    """Runs by `run` until `stop`."""

    def __init__(
        self,
        *,
        caller: Caller,
        terms: Terms,
        engine: LlamaCpp,
        bench: Workbench,
        unix_now: Callable[[], float],
    ) -> None:
        self._caller = caller
        self._terms = terms
        self._engine = engine
        self._bench = bench
        self._unix_now = unix_now
        self._speeds: Speeds | None = None
        self._session: Session | None = None
        self._stopping = asyncio.Event()
        engine.on_change = self._offer

    def stop(self) -> None:
        """Stop offering, let what runs end, then make `run` return."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until stopped.

        Raises:
            WrongWeights, CanaryFailed: this engine must not serve this release.
        """
        keeping = asyncio.create_task(keep(self._engine, on_ready=self._measured))
        dialling = asyncio.create_task(self._dial())
        expiring = asyncio.create_task(self._expire())
        stopping = asyncio.create_task(self._stopping.wait())
        tasks = (keeping, dialling, expiring, stopping)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await self._drain()
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self) -> None:
        closing = asyncio.create_task(self._bench.close(within=self._terms.drain_seconds))
        await asyncio.sleep(0)  # `close` has begun, so nothing is on offer
        self._offer()
        await closing
        if self._session is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._session.end()

    async def _dial(self) -> None:
        """Hold one session after another; pause longer only while none is let in."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            session = Session(self._caller, self._bench, self._capacity)
            self._session = session
            reason = await _hold(session)
            pause = next_pause(pause, welcomed=session.authenticated and not reason.is_refusal)
            longest = longest_pause(pause, holding=bool(self._bench.held))
            seconds = random.uniform(0, longest)  # noqa: S311 - full jitter, not a secret
            _log.warning("session ended", reason=reason.text, dial_again_seconds=round(seconds, 2))
            await asyncio.sleep(seconds)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_SECONDS)
            self._bench.expire()

    def _measured(self, speeds: Speeds) -> None:
        self._speeds = speeds
        _log.info("engine ready", prefill=round(speeds.prefill), decode=round(speeds.decode))
        self._offer()

    def _offer(self) -> None:
        if self._session is not None:
            self._session.offer()

    def _capacity(self) -> Capacity:
        """What is on offer now: nothing before the first probe has shown a speed."""
        speeds = self._speeds or Speeds(prefill=1.0, decode=1.0)
        terms = self._terms
        until = int(self._unix_now()) + terms.offer_seconds
        return Capacity(
            deployment=terms.deployment,
            release=terms.release,
            release_fingerprint=terms.release_fingerprint,
            capacity_class=terms.capacity_class,
            region=terms.region,
            ask_nano_per_slot_second=terms.ask_nano_per_slot_second,
            offered=self._bench.offered if self._speeds else 0,
            offer_until=until - until % 60,
            prefill_tokens_per_second=speeds.prefill,
            decode_tokens_per_second=speeds.decode,
        )


@dataclass(frozen=True, slots=True)
class _Ended:
    text: str
    is_refusal: bool = False


def next_pause(pause: float, *, welcomed: bool) -> float:
    """Return the ceiling of the next pause, in seconds; one is drawn from 0 to it.

    A session that was let in and then broke is dialled again at once: only failures before
    authentication, and refusals, make the pause grow.
    """
    return FIRST_PAUSE_SECONDS if welcomed else min(pause * 2, LAST_PAUSE_SECONDS)


def longest_pause(pause: float, *, holding: bool) -> float:
    """Return the ceiling of a pause, in seconds: a low one while leases are held."""
    return min(pause, HOLDING_PAUSE_SECONDS) if holding else pause


async def _hold(session: Session) -> _Ended:
    try:
        await session.hold()
    except (AgentError, ProtocolError) as error:
        return _Ended(f"{error.code}: {error}", is_refusal=error.code == "session-refused")
    except (OSError, TimeoutError, WebSocketException) as error:
        return _Ended(f"{type(error).__name__}: {error}")
    return _Ended("closed")
