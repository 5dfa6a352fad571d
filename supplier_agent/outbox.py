"""What waits to be sent in one session: control frames first, then the streams in turn.

One writer takes from it. A stream's own frames keep their order; what an engine gives between two
sends travels as one DATA frame. It is bounded by what the slot table keeps.
"""

import asyncio
import collections

from supplier_agent.protocol import (
    MAX_DATA_PAYLOAD_BYTES,
    AgentMessage,
    encode,
    encode_data,
    stream_of,
)


class Outbox:
    """The frames of one session. `seq` starts at 0 for every stream in it."""

    def __init__(self) -> None:
        self._control: collections.deque[str] = collections.deque()
        self._streams: dict[int, collections.deque[str | bytearray]] = {}
        self._seqs: collections.Counter[int] = collections.Counter()
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._emptied.set()

    def send(self, message: AgentMessage) -> None:
        """Queue a control frame before everything else."""
        self._control.append(encode(message))
        self._wake()

    def send_after(self, lease: str, message: AgentMessage) -> None:
        """Queue a control frame behind what its lease's stream has queued."""
        self._queue(lease).append(encode(message))
        self._wake()

    def send_data(self, lease: str, data: bytes) -> None:
        """Queue bytes of a stream."""
        queue = self._queue(lease)
        last = queue[-1] if queue else None
        if isinstance(last, bytearray) and len(last) + len(data) <= MAX_DATA_PAYLOAD_BYTES:
            last.extend(data)
        else:
            for start in range(0, len(data), MAX_DATA_PAYLOAD_BYTES):
                queue.append(bytearray(data[start : start + MAX_DATA_PAYLOAD_BYTES]))
        self._wake()

    def forget(self, lease: str) -> None:
        """Drop what is queued for a lease that the gateway wants no more."""
        self._streams.pop(stream_of(lease), None)

    async def take(self) -> str | bytes:
        """Wait for the next frame and return it: text for control, bytes for DATA."""
        while True:
            if self._control:
                return self._control.popleft()
            if self._streams:
                return self._take_from_next_stream()
            self._emptied.set()
            self._filled.clear()
            await self._filled.wait()

    async def emptied(self) -> None:
        """Wait until the writer has taken everything and asks for more."""
        await self._emptied.wait()

    def _take_from_next_stream(self) -> str | bytes:
        stream, queue = next(iter(self._streams.items()))
        item = queue.popleft()
        del self._streams[stream]
        if queue:
            self._streams[stream] = queue  # at the end: the others come first
        if isinstance(item, str):
            return item
        seq = self._seqs[stream]
        self._seqs[stream] += 1
        return encode_data(stream, seq, bytes(item))

    def _queue(self, lease: str) -> collections.deque[str | bytearray]:
        return self._streams.setdefault(stream_of(lease), collections.deque())

    def _wake(self) -> None:
        self._emptied.clear()
        self._filled.set()
