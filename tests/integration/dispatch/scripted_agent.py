"""An agent's side of the channel, driven by hand: it says exactly what a test tells it to."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID, uuid4

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from ledger.statement import SupplierStatement
from supplier_agent.protocol import (
    Accept,
    AgentMessage,
    Answer,
    AnswerAssembler,
    Capacity,
    Challenge,
    Done,
    GatewayMessage,
    Heartbeat,
    Hello,
    Reason,
    Refused,
    Run,
    Usage,
    Welcome,
    decode_from_gateway,
    encode,
    encode_data,
    hello_bytes,
    stream_of,
)
from tests.integration.seed import ASK, SeededAgent

Kind = TypeVar("Kind", bound=GatewayMessage)

FAR = 4_000_000_000
WAIT_SECONDS = 20.0


def sse(text_parts: Sequence[str], *, usage: Usage, finish: str = "stop") -> list[bytes]:
    """An engine's stream for an answer."""
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": {"content": part}}]} for part in text_parts
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
            },
        }
    )
    events = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
    return [*events, b"data: [DONE]\n\n"]


class ScriptedAgent:
    """One agent, perhaps over several connections."""

    def __init__(self, seeded: SeededAgent, *, fingerprint: str, region: str) -> None:
        self.seeded = seeded
        self.fingerprint = fingerprint
        self.region = region
        self.received: list[GatewayMessage] = []
        self.served: list[str] = []
        self.closed = asyncio.Event()
        self._news = asyncio.Condition()
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._boot = str(uuid4())

    @property
    def agent_id(self) -> str:
        return f"agent_{self.seeded.agent_id}"

    async def dial(
        self, url: str, *, held: Sequence[str] = (), sign_as: bytes | None = None
    ) -> None:
        """Connect and say hello; returns when the gateway has welcomed or refused it."""
        self.received = []
        self.closed = asyncio.Event()
        self._socket = await connect(f"{url}/v1/agents/connect", compression=None, open_timeout=20)
        challenge = decode_from_gateway(await self._socket.recv())
        assert isinstance(challenge, Challenge)
        session = str(uuid4())
        signed = hello_bytes(
            nonce=bytes.fromhex(challenge.nonce),
            session=session,
            version=1,
            agent_id=self.agent_id,
            host="test-host",
        )
        key = self.seeded.key if sign_as is None else type(self.seeded.key)(sign_as)
        await self.say(
            Hello(
                version=1,
                agent_id=self.agent_id,
                session=session,
                host="test-host",
                boot_id=self._boot,
                signature=key.sign(signed).hex(),
                held_leases=tuple(held),
            )
        )
        self._reader = asyncio.create_task(self._read(self._socket))
        await self.until(lambda: any(isinstance(m, Welcome | Refused) for m in self.received))

    async def offer(self, **changes: Any) -> None:
        """Send CAPACITY and return when the gateway has taken it or said why not."""
        capacity = Capacity(
            deployment="gpu0",
            release="smollm2-135m-instruct",
            release_fingerprint=self.fingerprint,
            capacity_class="flexible",
            region=self.region,
            ask_nano_per_slot_second=ASK,
            offered=4,
            offer_until=FAR,
            prefill_tokens_per_second=300.0,
            decode_tokens_per_second=20.0,
        )
        await self.say(msgspec.structs.replace(capacity, **changes))

    async def say(self, message: AgentMessage) -> None:
        await self.say_raw(encode(message))

    async def say_raw(self, frame: str | bytes) -> None:
        assert self._socket is not None
        with suppress(ConnectionClosed):
            await self._socket.send(frame)

    async def next_run(self, *, after: int = 0) -> Run:
        """The RUN after the first `after` ones."""
        await self.until(lambda: len(self.all_of(Run)) > after)
        return self.all_of(Run)[after]

    async def stream(self, lease: str, pieces: Sequence[bytes]) -> int:
        """Send DATA frames; return how many bytes of payload."""
        for seq, piece in enumerate(pieces):
            await self.say_raw(encode_data(stream_of(lease), seq, piece))
        return sum(map(len, pieces))

    async def serve(
        self,
        run: Run,
        *,
        text_parts: Sequence[str] = ("Hello", " there", "!"),
        input_tokens: int = 12,
        output_tokens: int = 4,
        accept: bool = True,
        **lies: Any,
    ) -> Done:
        """Do one RUN properly, or with changed fields in its DONE."""
        self.served.append(run.lease)
        usage = Usage(input_tokens=input_tokens, cached_input_tokens=0, output_tokens=output_tokens)
        pieces = sse(text_parts, usage=usage)
        if accept:
            await self.say(Accept(lease=run.lease))
        size = await self.stream(run.lease, pieces)
        done = self.done(run, pieces, **{"stream_bytes": size, **lies})
        await self.say(done)
        return done

    def done(self, run: Run, pieces: Sequence[bytes], *, stream_bytes: int, **lies: Any) -> Done:
        """The DONE of a stream; lies among usage and fingerprint are signed like the truth."""
        answer = assembled(pieces)
        truth = Done(
            lease=run.lease,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            stream_bytes=stream_bytes,
            response_digest=answer.digest.hex(),
            release_fingerprint=self.fingerprint,
            statement="",
            statement_signature="00" * 64,
        )
        told = msgspec.structs.replace(truth, **lies)
        statement = SupplierStatement(
            lease=UUID(run.lease.removeprefix("lease_")),
            job=UUID(run.job.removeprefix("job_")),
            request_digest=bytes.fromhex(run.request_digest),
            response_digest=bytes.fromhex(told.response_digest),
            input_tokens=told.usage.input_tokens,
            cached_input_tokens=told.usage.cached_input_tokens,
            output_tokens=told.usage.output_tokens,
            finish=told.finish_reason,
            release_fingerprint=told.release_fingerprint,
        )
        signed = {
            "statement": statement.canonical().decode(),
            "statement_signature": statement.sign(self.seeded.key.seed).hex(),
        }
        return msgspec.structs.replace(told, **{**signed, **lies})

    def all_of(self, kind: type[Kind]) -> list[Kind]:
        return [message for message in self.received if isinstance(message, kind)]

    def of_lease(self, kind: type[Kind], lease: str) -> list[Kind]:
        return [message for message in self.all_of(kind) if getattr(message, "lease", "") == lease]

    async def until(self, condition: Callable[[], bool], *, forever: bool = False) -> None:
        """Return once `condition` holds; looked at whenever something arrives."""
        async with asyncio.timeout(None if forever else WAIT_SECONDS), self._news:
            await self._news.wait_for(condition)

    async def hang_up(self) -> None:
        """Close as a crash does: without a word."""
        assert self._socket is not None
        self._socket.transport.abort()
        if self._reader is not None:
            await self._reader

    async def leave(self) -> None:
        """Close properly, if still connected."""
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            await self._reader

    async def _read(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                message = decode_from_gateway(await socket.recv())
                if not isinstance(message, Heartbeat):
                    async with self._news:
                        self.received.append(message)
                        self._news.notify_all()
        async with self._news:
            self.closed.set()
            self._news.notify_all()

    def reasons(self) -> list[str]:
        return [message.text for message in self.all_of(Reason)]


def assembled(pieces: Sequence[bytes]) -> Answer:
    """What the pieces make of an answer."""
    assembler = AnswerAssembler(max_output_tokens=1_000_000)
    for piece in pieces:
        assembler.feed(piece)
    return assembler.finish()
