import asyncio
from contextlib import suppress
from typing import cast

from redis.asyncio import Redis

from app.kit.wakes import Wakes


class Swallowing:
    """A client that, as redis-py does while it connects, does not pass a cancellation on."""

    def __init__(self) -> None:
        self.sending = asyncio.Event()

    def pipeline(self, *, transaction: bool) -> "Swallowing":
        assert not transaction
        return self

    def publish(self, _channel: str, _message: bytes) -> None:
        pass

    async def execute(self) -> None:
        self.sending.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def test_a_sender_whose_cancellation_was_swallowed_ends_all_the_same() -> None:
    client = Swallowing()
    wakes = Wakes(cast("Redis", client))
    running = asyncio.create_task(wakes.run())
    wakes.publish("channel", b"")
    await client.sending.wait()
    running.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait({running})
    assert running.cancelled()
