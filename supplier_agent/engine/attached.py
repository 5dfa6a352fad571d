"""An engine that somebody else runs, at a URL. The agent neither starts nor ends it."""

import asyncio


class Attached:
    """A server that speaks llama.cpp's HTTP surface."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    async def start(self, *, within: float) -> str:  # noqa: ARG002 - nothing to wait for
        """Return the URL."""
        return self._url

    async def exited(self) -> str:
        """Never return: only the streams tell when it is gone."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def kill(self) -> None:
        """Leave it alone."""
