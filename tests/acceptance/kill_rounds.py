"""SIGKILL at random points: buyers go on, one part after another dies and comes back."""

import random
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.acceptance.patrons import Notes, patrons
from tests.acceptance.town import AGENTS, ENGINES, GATEWAYS, Town
from tests.waiting import wait_until

PARTS = {
    "gateway": GATEWAYS,
    "worker": ("worker",),
    "agent": tuple(AGENTS),
    "engine": ENGINES,
    "postgres": ("postgres",),
    "valkey": ("valkey",),
}
MOST_PAUSE_SECONDS = 0.4
RECOVERY_SECONDS = 90.0


@dataclass
class KillRounds:
    """The kills so far, and how long each took to get over."""

    town: Town
    random: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By part, seconds from each kill until every part was back and jobs ended again."""

    def play(self, rounds: int, *, people: int, until: float = float("inf")) -> Notes:
        """Kill `rounds` times, each part as often as any other, or until a monotonic time.

        Returns what the buyers were told.
        """
        wallets = [self.town.site.wallet() for _ in range(people)]
        seed = self.random.getrandbits(32)
        order: list[str] = []
        with patrons(self.town.site, wallets, gateways=GATEWAYS, seed=seed) as notes:
            for _ in range(rounds):
                if time.monotonic() > until:
                    break
                if not order:
                    order = list(PARTS)
                    self.random.shuffle(order)
                self._round(order.pop(), notes)
        return notes

    def _round(self, part: str, notes: Notes) -> None:
        wait_for_more(notes, self.random.randint(1, 8))
        # the point of the kill is chance, not something waited for
        threading.Event().wait(self.random.random() * MOST_PAUSE_SECONDS)
        begun = time.monotonic()
        self.town.kill_and_restart(self.random.choice(PARTS[part]))
        self.kills[part] += 1
        wait_until(self._everything_is_on_offer, timeout_seconds=RECOVERY_SECONDS)
        wait_for_more(notes, 2)
        self.recoveries[part].append(time.monotonic() - begun)

    def _everything_is_on_offer(self) -> bool:
        """Whether every slot can be bought; rests after faults are not what is on trial."""
        self.town.forgive()
        return self.town.are_slots_on_offer()


def wait_for_more(notes: Notes, jobs: int) -> None:
    """Return once so many more jobs have ended."""
    wanted = notes.ended + jobs
    wait_until(lambda: notes.ended >= wanted, timeout_seconds=RECOVERY_SECONDS)
