"""The two engines by URL: ours when none is named, the operator's otherwise."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.embedded.valkey import EmbeddedValkey, ValkeyOptions


@dataclass(frozen=True, slots=True)
class Engines:
    """Where Postgres and Valkey (or Redis) are; both URLs may hold passwords and are not shown."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)


@contextmanager
def running_engines(
    home: Path | None = None,
    *,
    database_url: str | None = None,
    redis_url: str | None = None,
    fsync: bool = True,
) -> Iterator[Engines]:
    """Yield both engines; each one that has no URL is started here and stopped at the end.

    `home` is where the started ones keep their data (None: temporary).

    Raises:
        EmbeddedError: one of them did not start; none is left running.
    """
    with ExitStack() as stack:
        if database_url is None:
            postgres = EmbeddedPostgres.start(PostgresOptions(home=home, fsync=fsync))
            database_url = stack.enter_context(postgres).url
        if redis_url is None:
            valkey = EmbeddedValkey.start(ValkeyOptions(home=home))
            redis_url = stack.enter_context(valkey).url
        yield Engines(database_url, redis_url)


@asynccontextmanager
async def embedded_engines(
    home: Path | None = None,
    *,
    database_url: str | None = None,
    redis_url: str | None = None,
    fsync: bool = True,
) -> AsyncIterator[Engines]:
    """Do as `running_engines` without blocking the event loop."""
    engines = running_engines(home, database_url=database_url, redis_url=redis_url, fsync=fsync)
    started = await asyncio.to_thread(engines.__enter__)
    try:
        yield started
    finally:
        await asyncio.to_thread(engines.__exit__, None, None, None)
