"""Wake-ups between replicas over Valkey's publish and subscribe. A hint, never the truth.

Without Valkey, or while it is away, nothing is delivered and nobody waits for it: every receiver
also looks at Postgres once a second.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

Handler = Callable[[bytes], None]

QUEUE_LENGTH = 10_000
READ_SECONDS = 1.0
RETRY_SECONDS = 0.5

log = structlog.get_logger()


class Wakes:
    """Sends and receives short messages on named channels, at most once."""

    def __init__(self, valkey: Redis | None) -> None:
        """Take the connection, or None to deliver nothing."""
        self._valkey = valkey
        self._handlers: dict[str, Handler] = {}
        self._outgoing: deque[tuple[str, bytes]] = deque(maxlen=QUEUE_LENGTH)
        self._ready = asyncio.Event()
        self.listening = asyncio.Event()
        """Set while subscribed; messages sent before are not received."""

    def on(self, channel: str, handler: Handler) -> None:
        """Call `handler` with every message on `channel`; before `run`."""
        self._handlers[channel] = handler

    def publish(self, channel: str, message: bytes) -> None:
        """Send soon, if Valkey answers; returns at once. The oldest of too many are dropped."""
        if self._valkey is not None:
            self._outgoing.append((channel, message))
            self._ready.set()

    async def run(self) -> None:
        """Send and receive until cancelled."""
        if self._valkey is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send(self._valkey))
            if self._handlers:
                tasks.create_task(self._receive(self._valkey))

    async def _send(self, valkey: Redis) -> None:
        while True:
            _stop_if_cancelled()
            await self._ready.wait()
            self._ready.clear()
            try:
                await self._send_all(valkey)
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("wakes not sent", error=type(error).__name__)
                self._outgoing.clear()
                await asyncio.sleep(RETRY_SECONDS)

    async def _send_all(self, valkey: Redis) -> None:
        while self._outgoing:
            pipeline = valkey.pipeline(transaction=False)
            while self._outgoing:
                channel, message = self._outgoing.popleft()
                pipeline.publish(channel, message)
            await pipeline.execute()

    async def _receive(self, valkey: Redis) -> None:
        while True:
            try:
                await self._listen(valkey)
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("wakes not received", error=type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)

    async def _listen(self, valkey: Redis) -> None:
        async with valkey.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe(*self._handlers)
            self.listening.set()
            try:
                while True:
                    _stop_if_cancelled()
                    message = await pubsub.get_message(timeout=READ_SECONDS)
                    if message is not None and message["type"] == "message":
                        self._handlers[message["channel"].decode()](message["data"])
            finally:
                self.listening.clear()


def _stop_if_cancelled() -> None:
    """Raise the cancellation that redis-py swallows when it comes while it connects."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
