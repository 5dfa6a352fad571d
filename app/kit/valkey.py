"""The connection to Valkey or Redis: it wakes and caches, and may be away."""

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

Valkey = Redis
"""The client, by the name of what we run."""

CONNECT_SECONDS = 2
POOL_SIZE = 20


def open_valkey(url: str) -> Redis:
    """Return a client that connects when first used and waits for a free connection."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=POOL_SIZE,
        timeout=CONNECT_SECONDS,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=CONNECT_SECONDS,
    )
    return Redis.from_pool(pool)


async def answers(valkey: Redis) -> bool:
    """Return whether it is there and done loading (`BusyLoadingError` is an error too)."""
    try:
        await valkey.ping()
    except (RedisError, OSError, TimeoutError):
        return False
    return True
