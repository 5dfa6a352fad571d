"""From an engine's server-sent events to an answer, or to the reason why there is none.

Both sides run this: the agent before it signs, the gateway before it charges. Success is a finish
reason of stop, length or tool_calls, AND a final usage, AND `[DONE]`; engines send HTTP 200 and
`[DONE]` after an error too, and an aborted stream carries usage.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import Meta

from ledger.commitment import answer_digest
from supplier_agent.protocol.errors import ProtocolError
from supplier_agent.protocol.messages import Usage

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]

BYTES_PER_TOKEN = 1024
"""Most bytes of events one output token may take; engines send 200 to 300."""
BYTES_PER_STREAM = 65_536
"""Room for the events that carry no token: role, usage, comments."""
_FINISHES: Final = frozenset(get_args(FinishReason))
_NULL_BYTES: Final = b"null"
_NULL: Final = msgspec.Raw(_NULL_BYTES)
_NO_TOOL_CALLS: Final = (_NULL_BYTES, b"[]")
_Tokens = Annotated[int, Meta(ge=0, lt=2**31)]


class MalformedStream(ProtocolError):
    """The stream is not a success.

    `reason` is one of engine-error, bad-event, second-choice, unexpected-tool-calls,
    bad-finish, text-after-finish, event-after-done, no-finish, no-usage, no-done, too-large.
    """

    code = "malformed-stream"

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole, successful answer and the usage its engine reported last."""

    content: str
    finish_reason: FinishReason
    usage: Usage

    @property
    def digest(self) -> bytes:
        """The 32 bytes the supplier's statement names as response digest."""
        return answer_digest(self.content, self.finish_reason)


def stream_limit_bytes(max_output_tokens: int) -> int:
    """Return the most bytes a stream with this ceiling may have."""
    return BYTES_PER_STREAM + BYTES_PER_TOKEN * max_output_tokens


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    tool_calls: msgspec.Raw = _NULL


class _Choice(msgspec.Struct, frozen=True):
    index: int = 0
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _CachedTokens(msgspec.Struct, frozen=True):
    cached_tokens: _Tokens | None = None


class _EngineUsage(msgspec.Struct, frozen=True):
    prompt_tokens: _Tokens
    completion_tokens: _Tokens
    prompt_tokens_details: _CachedTokens | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...] = ()
    usage: _EngineUsage | None = None
    error: msgspec.Raw = _NULL


_CHUNKS = msgspec.json.Decoder(_Chunk)


class AnswerAssembler:
    """Takes a stream in pieces of any size, and keeps no more than the ceiling allows."""

    def __init__(self, *, max_output_tokens: int) -> None:
        self._limit = stream_limit_bytes(max_output_tokens)
        self._received = 0
        self._partial = bytearray()
        self._texts: list[str] = []
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None
        self._done = False

    @property
    def is_done(self) -> bool:
        """Whether `[DONE]` has come; says nothing about success."""
        return self._done

    @property
    def text(self) -> str:
        """The answer as far as it has come."""
        return "".join(self._texts)

    def feed(self, piece: bytes) -> str:
        """Take the next bytes and return the text they complete, perhaps none.

        Raises:
            MalformedStream: the stream can no longer be a success.
        """
        self._received += len(piece)
        if self._received > self._limit:
            raise MalformedStream("too-large", f"over {self._limit} bytes")
        self._partial += piece
        before = len(self._texts)
        if b"\n" in piece:  # else a hostile stream of tiny pieces would be searched again and again
            *lines, rest = bytes(self._partial).split(b"\n")
            self._partial = bytearray(rest)
            for line in lines:
                self._take_line(line.rstrip(b"\r"))
        return "".join(self._texts[before:])

    def finish(self) -> Answer:
        """Return the answer, once the stream has ended.

        Raises:
            MalformedStream: no finish reason, no usage or no `[DONE]` came.
        """
        if self._finish is None:
            raise MalformedStream("no-finish")
        if self._usage is None:
            raise MalformedStream("no-usage")
        if not self._done:
            raise MalformedStream("no-done")
        return Answer("".join(self._texts), self._finish, self._usage)

    def _take_line(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if not line or not field:  # a blank line, or a comment that keeps the connection open
            return
        if field == b"error":
            raise MalformedStream("engine-error", _shown(value))
        if field != b"data":
            return
        if self._done:
            raise MalformedStream("event-after-done", _shown(value))
        value = value.strip()
        if value == b"[DONE]":
            self._done = True
            return
        self._take_chunk(value)

    def _take_chunk(self, value: bytes) -> None:
        try:
            chunk = _CHUNKS.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedStream("bad-event", str(error)) from error
        if bytes(chunk.error) != _NULL_BYTES:
            raise MalformedStream("engine-error", _shown(bytes(chunk.error)))
        for choice in chunk.choices:
            self._take_choice(choice)
        if chunk.usage is not None:
            self._usage = _usage(chunk.usage)

    def _take_choice(self, choice: _Choice) -> None:
        if choice.index != 0:
            raise MalformedStream("second-choice", f"index {choice.index}")
        if bytes(choice.delta.tool_calls) not in _NO_TOOL_CALLS:
            # No request of ours can name a tool, so these would be charged and lost.
            raise MalformedStream("unexpected-tool-calls")
        if choice.delta.content:
            if self._finish is not None:
                raise MalformedStream("text-after-finish")
            self._texts.append(choice.delta.content)
        if choice.finish_reason is not None:
            if choice.finish_reason not in _FINISHES:
                raise MalformedStream("bad-finish", _shown(choice.finish_reason.encode()))
            self._finish = cast("FinishReason", choice.finish_reason)


def _usage(reported: _EngineUsage) -> Usage:
    details = reported.prompt_tokens_details
    return Usage(
        input_tokens=reported.prompt_tokens,
        cached_input_tokens=(details.cached_tokens or 0) if details else 0,
        output_tokens=reported.completion_tokens,
    )


def _shown(value: bytes) -> str:
    return value[:200].decode(errors="replace").strip()
