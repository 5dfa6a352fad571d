"""Blocks for a development chain that nobody else uses: finality comes with blocks.

Anvil mines one for each transaction. Two more make that one final, so they are mined when the last
ones hold a transaction; besides one now and then, so that the chain's clock goes on.
"""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from app.embedded.anvil import AnvilRefused, ask_chain

FINAL_BLOCKS: Final = 2
"""How far `finalized` is behind `latest`; see `AnvilOptions.slots_in_an_epoch`."""
EVERY_SECONDS: Final = 0.25
IDLE_SECONDS: Final = 30.0


class Mining:
    """Mines in a thread while entered."""

    def __init__(self, url: str) -> None:
        """Take the chain's URL."""
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="mining")
        self._mined_at = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            with suppress(AnvilRefused):  # it is stopping, or very busy
                self._round()

    def _round(self) -> None:
        idle = time.monotonic() - self._mined_at > IDLE_SECONDS
        if idle or self._has_news():
            ask_chain(self._url, "anvil_mine", ())
            self._mined_at = time.monotonic()

    def _has_news(self) -> bool:
        """Return whether one of the blocks that are not final holds a transaction."""
        latest = self._block("latest")
        height = int(latest["number"], 16)
        blocks = [latest, *(self._block(hex(max(height - n, 0))) for n in range(1, FINAL_BLOCKS))]
        return any(block["transactions"] for block in blocks)

    def _block(self, which: str) -> Any:
        return ask_chain(self._url, "eth_getBlockByNumber", (which, False))
