"""An engine that misbehaves on request: llama.cpp's HTTP surface over a scripted reply.

It replays what real engines did (`Fault`), so that the agent and the gateway can be tested
against it. A user message containing `[[fault:NAME]]` chooses the fault for that request; `PUT
/control` with a JSON `Script` sets everything for those that name none. Run it by
`python -m supplier_agent.engine.faults --port 0 [--release release.json]`, or inside a test by
`FaultEngine`. It answers the release's canary rightly, whatever the script.
"""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from supplier_agent.protocol import Message
from supplier_agent.release import BadRelease, Canary, load_release

_MARK = re.compile(r"\[\[fault:([a-z-]+)\]\]")


class Fault(StrEnum):
    """What goes wrong. Each was seen in a real engine, or is the worst a liar could do."""

    NONE = "none"
    ERROR_EVENT = "error-event"
    """HTTP 200, an error event, then `[DONE]`."""
    ABORT = "abort"
    """finish_reason `abort`, usage, `[DONE]`."""
    NO_USAGE = "no-usage"
    """A whole answer without a usage."""
    NO_DONE = "no-done"
    """A whole answer and usage; the stream just closes."""
    INFLATED_USAGE = "inflated-usage"
    """Claims ten times the output tokens."""
    WRONG_INPUT = "wrong-input"
    """Claims 1,000 more input tokens."""
    SILENCE = "silence"
    """Nothing more after `after_tokens`; `/health` stays well."""
    SILENT_PINGS = "silent-pings"
    """The same, with comments that keep the connection busy."""
    CRASH = "crash"
    """The process ends in mid-stream with exit code 0."""
    DROP = "drop"
    """The connection is cut in mid-stream."""
    SLOW = "slow"
    """`delay_seconds` before each token, until the next script is put: then as fast as it goes."""
    HUGE = "huge"
    """Text without end, far over the ceiling."""
    GARBAGE = "garbage"
    """Bytes that are no JSON and no UTF-8."""
    BUSY = "busy"
    """503 at once."""
    REFUSE = "refuse"
    """400 at once."""
    SERVER_ERROR = "server-error"
    """500 at once."""
    STUCK_SLOT = "stuck-slot"
    """Silent, and `/slots` shows the slot busy for good."""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do. Counts of tokens left null are counted by words, plus one for a stop."""

    fault: Fault = Fault.NONE
    reply: str = " one two three four five"
    after_tokens: Annotated[int, Meta(ge=0)] = 2
    delay_seconds: Annotated[float, Meta(ge=0, le=60)] = 0.0
    prompt_tokens: Annotated[int, Meta(ge=0)] | None = None
    output_tokens: Annotated[int, Meta(ge=0)] | None = None


class _Request(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...]
    max_tokens: int
    id_slot: int = -1


class FaultEngine:
    """The engine's state: its script, its slots, and the requests it was sent."""

    def __init__(
        self, *, slots: int = 4, canary: Canary | None = None, script: Script | None = None
    ) -> None:
        self.script = script or Script()
        self.busy: set[int] = set()
        self.bodies: list[bytes] = []
        self._slots = slots
        self._canary = canary
        self._replaced = asyncio.Event()

    def application(self) -> web.Application:
        """Return the HTTP application. Run it with `handler_cancellation=True`."""
        app = web.Application()
        app.router.add_get("/health", self._health)
        app.router.add_get("/slots", self._show_slots)
        app.router.add_put("/control", self._control)
        app.router.add_post("/v1/chat/completions", self._complete)
        return app

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _show_slots(self, _: web.Request) -> web.Response:
        slots = [{"id": i, "is_processing": i in self.busy} for i in range(self._slots)]
        return web.json_response(slots)

    async def _control(self, request: web.Request) -> web.Response:
        try:
            self.script = msgspec.json.decode(await request.read(), type=Script)
        except msgspec.DecodeError as error:
            return web.json_response({"error": str(error)}, status=400)
        self._replaced.set()
        self._replaced = asyncio.Event()
        return web.json_response({"status": "ok"})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.bodies.append(body)
        asked = msgspec.json.decode(body, type=_Request)
        hurry = self._replaced  # of the script that the next line takes
        try:
            script = self._script_for(asked)
        except ValueError as error:  # a mark that names no fault
            return web.json_response({"error": {"message": str(error)}}, status=400)
        status = {Fault.BUSY: 503, Fault.REFUSE: 400, Fault.SERVER_ERROR: 500}.get(script.fault)
        if status is not None:
            # like real engines, it repeats what it was asked
            message = f"{script.fault}: {asked.messages[-1].content}"
            return web.json_response({"error": {"message": message}}, status=status)
        self.busy.add(asked.id_slot)
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            async for piece in _stream(asked, script, hurry=hurry):
                if piece is None:
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                await response.write(piece)
            return response
        finally:
            if script.fault is not Fault.STUCK_SLOT:
                self.busy.discard(asked.id_slot)

    def _script_for(self, asked: _Request) -> Script:
        if self._canary is not None and asked.messages == self._canary.messages:
            return Script(reply=self._canary.answer)
        marks = _MARK.findall(asked.messages[-1].content)
        if not marks:
            return self.script
        return msgspec.structs.replace(self.script, fault=Fault(marks[-1]))


async def _stream(
    asked: _Request, script: Script, *, hurry: asyncio.Event
) -> AsyncIterator[bytes | None]:
    """The reply's events, bent as the script says. None: cut the connection."""
    words = re.findall(r"\s*\S+|\s+$", script.reply)
    yield _event({"choices": [_choice({"role": "assistant", "content": None})]})
    for number, word in enumerate(words[: asked.max_tokens]):
        if number == script.after_tokens:
            async for piece in _mishap(script.fault, asked.messages[-1].content):
                yield piece
                if piece is None:
                    return
        if script.fault is Fault.SLOW:
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), script.delay_seconds)
        yield _event({"choices": [_choice({"content": word})]})
    for piece in _ending(asked, script, words=len(words)):
        yield piece


async def _mishap(fault: Fault, prompt: str) -> AsyncIterator[bytes | None]:
    match fault:
        case Fault.SILENCE | Fault.STUCK_SLOT:
            await asyncio.get_running_loop().create_future()
        case Fault.SILENT_PINGS:
            while True:
                yield b": ping\n\n"
                await asyncio.sleep(0.02)
        case Fault.CRASH:
            os._exit(0)
        case Fault.DROP:
            yield None
        case Fault.HUGE:
            while True:
                yield _event({"choices": [_choice({"content": "x" * 65_536})]})
        case Fault.GARBAGE:
            yield b"data: {\xff\xfe\x00 not json: " + prompt.encode() + b"\n\n"
        case Fault.ERROR_EVENT:
            yield _event({"error": {"code": 500, "message": f"the worker died at: {prompt}"}})
            yield b"data: [DONE]\n\n"
        case _:
            return


def _ending(asked: _Request, script: Script, *, words: int) -> list[bytes]:
    stopped = words < asked.max_tokens
    finish = "stop" if stopped else "length"
    if script.fault is Fault.ABORT:
        finish = "abort"
    output = script.output_tokens
    if output is None:
        output = min(words + stopped, asked.max_tokens)
    prompt = script.prompt_tokens
    if prompt is None:
        prompt = sum(len(message.content.split()) for message in asked.messages)
    if script.fault is Fault.INFLATED_USAGE:
        output *= 10
    if script.fault is Fault.WRONG_INPUT:
        prompt += 1000
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    pieces = [_event({"choices": [_choice({}, finish)]})]
    if script.fault is not Fault.NO_USAGE:
        pieces.append(_event({"choices": [], "usage": usage}))
    if script.fault is not Fault.NO_DONE:
        pieces.append(b"data: [DONE]\n\n")
    return pieces


def _choice(delta: dict[str, str | None], finish: str | None = None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _event(chunk: dict[str, object]) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


async def _serve(port: int, engine: FaultEngine) -> None:
    runner = web.AppRunner(engine.application(), handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    host, bound = runner.addresses[0][:2]
    sys.stdout.write(f"READY http://{host}:{bound}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().create_future()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0: any free one")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--release", type=Path, help="whose canary to answer")
    parser.add_argument("--script", default="{}", help="what to do from the start, as JSON")
    options = parser.parse_args()
    try:
        canary = load_release(options.release).canary if options.release else None
    except BadRelease as error:
        parser.error(str(error))
    script = msgspec.json.decode(options.script, type=Script)
    engine = FaultEngine(slots=options.slots, canary=canary, script=script)
    asyncio.run(_serve(options.port, engine))


if __name__ == "__main__":
    main()
