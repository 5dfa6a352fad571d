"""llama.cpp's server as a child of the agent, in a process group of its own.

Any exit that `kill` did not ask for is a crash, exit code 0 included.
"""

import asyncio
import collections
import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from supplier_agent.engine.outcome import EngineFailed

_LOG_LINES = 40
_LOG_COLUMNS = 400
_TERM_SECONDS = 2.0
_CAUSES: Final = (
    ("out-of-memory", ("out of memory", "bad_alloc", "failed to allocate")),
    ("address-in-use", ("address already in use", "couldn't bind")),
    ("no-such-model", ("failed to open", "no such file", "failed to load model")),
    ("no-kv-space", ("failed to create context", "kv cache")),
)
"""What to look for in the log's tail, lower case, most telling first."""


@dataclass(frozen=True, slots=True)
class LlamaChildOptions:
    """What to serve and how wide. `context_tokens` is per slot."""

    weights: Path
    name: str
    slots: int
    context_tokens: int
    threads: int = 1


class LlamaChild:
    """At most one child process at a time."""

    def __init__(self, options: LlamaChildOptions) -> None:
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self._log: collections.deque[str] = collections.deque(maxlen=_LOG_LINES)
        self._logging: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int | None:
        """The child's process id, also its process group's, while it lives."""
        return self._process.pid if self._process else None

    async def start(self, *, within: float) -> str:
        """Start the child and return its base URL once its model is loaded.

        Raises:
            EngineFailed: it ended, or was not ready `within` seconds.
        """
        assert self._process is None
        options = self._options
        self._log.clear()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "supplier_agent.engine.llama_host"),
            *("--weights", str(options.weights), "--name", options.name),
            *("--slots", str(options.slots), "--context", str(options.context_tokens)),
            *("--threads", str(options.threads), "--parent", str(os.getpid())),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._logging = [asyncio.create_task(self._keep_log(self._process.stderr))]
        try:
            async with asyncio.timeout(within):
                url = await _ready_url(self._process.stdout)
        except (TimeoutError, EOFError) as error:
            kind = "not ready in time" if isinstance(error, TimeoutError) else "ended"
            await self.kill()
            raise EngineFailed(self._cause() or kind, " | ".join(list(self._log)[-3:])) from error
        # Read on, or a full pipe would stop the engine.
        self._logging.append(asyncio.create_task(self._keep_log(self._process.stdout)))
        return url

    async def exited(self) -> str:
        """Wait for the child's end and return it in words."""
        assert self._process is not None
        code = await self._process.wait()
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"{ended} ({self._cause() or 'no cause in its log'})"

    async def kill(self) -> None:
        """End the child and everything in its group: TERM, a short wait, KILL."""
        process, self._process = self._process, None
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TERM_SECONDS):
                    await process.wait()
        await process.wait()
        await asyncio.gather(*self._logging)
        self._logging = []

    async def _keep_log(self, output: asyncio.StreamReader) -> None:
        while line := await _line(output):
            self._log.append(line[:_LOG_COLUMNS].decode(errors="replace").strip())

    def _cause(self) -> str | None:
        tail = "\n".join(self._log).lower()
        return next((cause for cause, signs in _CAUSES if any(s in tail for s in signs)), None)


async def _ready_url(stdout: asyncio.StreamReader) -> str:
    while line := await _line(stdout):
        word, _, url = line.decode(errors="replace").strip().partition(" ")
        if word == "READY":
            return url
    raise EOFError


async def _line(stream: asyncio.StreamReader) -> bytes:
    """The next line, or an empty one at the end; an overlong line comes in pieces."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.readexactly(error.consumed)
