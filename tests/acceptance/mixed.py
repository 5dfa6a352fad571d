"""Many clients, a hot wallet, failing engines: no slot is sold twice, no wallet overspent."""

import random
import threading
import time
from collections.abc import Sequence

from app.client.wallet import Wallet
from ledger.money import Nano
from supplier_agent.engine.faults import Fault
from tests.acceptance.endstate import assert_money, assert_never_oversold, assert_whole, rows
from tests.acceptance.evidence import assert_evidence
from tests.acceptance.patrons import Notes, patrons
from tests.acceptance.site import Site
from tests.waiting import wait_until

OVERSOLD = "SELECT d.id, d.occupied FROM offpeak.deployment d WHERE d.occupied > {slots}"
FAULTS = (
    Fault.SERVER_ERROR,
    Fault.NO_DONE,
    Fault.DROP,
    Fault.ERROR_EVENT,
    Fault.INFLATED_USAGE,
    Fault.BUSY,
)
HOT_TOKENS = 0.00002
"""A hot wallet holds about two jobs at once, and many want to use it."""
TURN_SECONDS = 0.5


def play(
    site: Site,
    *,
    seconds: float,
    clients: int,
    gateways: Sequence[str],
    failing: Sequence[str],
    slots: int,
    seed: int,
) -> Notes:
    """Let the clients ask for so long; return what they were told. A quarter share a wallet."""
    chance = random.Random(seed)
    hot: list[Wallet] = [site.wallet(Nano(int(HOT_TOKENS * 10**9)))] * (clients // 4)
    wallets = hot + [site.wallet() for _ in range(clients - len(hot))]
    stop = threading.Event()
    end = time.monotonic() + seconds

    def over() -> bool:
        assert rows(site, OVERSOLD.format(slots=slots)) == []
        return time.monotonic() > end

    def spoil() -> None:
        while not stop.wait(TURN_SECONDS):
            fault = chance.choice((Fault.NONE, *FAULTS))
            site.script(chance.choice(failing), fault=fault)

    spoiler = threading.Thread(target=spoil)
    spoiler.start()
    try:
        with patrons(site, wallets, gateways=gateways, seed=seed) as notes:
            wait_until(over, timeout_seconds=seconds + 60)
    finally:
        stop.set()
        spoiler.join()
    return notes


def assert_sound(site: Site, notes: Notes, *, slots: int) -> None:
    """Afterwards: nothing oversold by the lease rows, nothing lost, nothing overspent."""
    assert_whole(site, notes)
    assert_evidence(site)
    assert_never_oversold(site, slots=slots)
    assert_money(site)
    assert "internal-error" not in notes.refusals
