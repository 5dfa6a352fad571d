"""SIGKILL at random points: buyers go on, one part after another dies and comes back."""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.client.wallet import Wallet
from tests.acceptance.patrons import Notes, patrons
from tests.acceptance.site import Site
from tests.acceptance.stores import Stores
from tests.waiting import wait_until

GATEWAYS = ("gateway-a", "gateway-b")
AGENTS = {"agent-1": "gateway-a", "agent-2": "gateway-b"}
PARTS = ("gateway", "worker", "agent", "engine", "postgres", "valkey")
SLOTS = 8
PACE_SECONDS = 0.03
"""Between an engine's tokens, so that kills meet jobs in every stage."""
MOST_PAUSE_SECONDS = 0.4
RECOVERY_SECONDS = 90.0


@dataclass
class KillRounds:
    """Two gateways, a worker and two agents with an engine each, on stores of their own."""

    site: Site
    stores: Stores
    random: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By part, seconds from each kill until every part was back and jobs ended again."""

    def play(self, rounds: int, notes: Notes, *, until: float = float("inf")) -> None:
        """Kill `rounds` times, each part as often as any other, or until a monotonic time."""
        order: list[str] = []
        for _ in range(rounds):
            if time.monotonic() > until:
                return
            if not order:
                order = list(PARTS)
                self.random.shuffle(order)
            self._round(order.pop(), notes)

    def _round(self, part: str, notes: Notes) -> None:
        wanted = notes.ended + self.random.randint(1, 8)
        wait_until(lambda: notes.ended >= wanted, timeout_seconds=RECOVERY_SECONDS)
        # the point of the kill is chance, not something waited for
        threading.Event().wait(self.random.random() * MOST_PAUSE_SECONDS)
        begun = time.monotonic()
        self._kill_and_restart(part)
        self.kills[part] += 1
        for gateway in GATEWAYS:
            self.site.wait_for_slots(SLOTS * len(AGENTS), gateway=gateway)
        again = notes.ended + 2
        wait_until(lambda: notes.ended >= again, timeout_seconds=RECOVERY_SECONDS)
        self.recoveries[part].append(time.monotonic() - begun)

    def _kill_and_restart(self, part: str) -> None:
        site = self.site
        match part:
            case "gateway":
                name = self.random.choice(GATEWAYS)
                site.kill(name)
                site.gateway(name)
            case "worker":
                site.kill("worker")
                site.worker()
            case "agent":
                name = self.random.choice(sorted(AGENTS))
                site.kill(name)
                start_agent(site, name)
            case "engine":
                name = self.random.choice(sorted(AGENTS)).replace("agent", "engine")
                site.kill(name)
                start_engine(site, name)
            case "postgres":
                self.stores.kill_postgres()
                self.stores.start_postgres()
            case _:
                self.stores.kill_valkey()
                self.stores.start_valkey()


def start_engine(site: Site, name: str) -> None:
    """Start an engine, again on the port it had."""
    site.engine(name, slots=SLOTS, delay_seconds=PACE_SECONDS)


def start_agent(site: Site, name: str) -> None:
    """Start an agent on its engine, at the gateway that is its own."""
    engine = name.replace("agent", "engine")
    site.agent(name, engine=engine, gateway=AGENTS[name], slots=SLOTS)


@contextmanager
def kill_rounds(folder: Path, *, seed: int) -> Iterator[KillRounds]:
    """Start everything; end everything with the block."""
    with Stores() as stores, Site(stores.database_url, stores.redis_url, folder) as site:
        for gateway in GATEWAYS:
            site.gateway(gateway)
        site.worker()
        for agent in AGENTS:
            start_engine(site, agent.replace("agent", "engine"))
            start_agent(site, agent)
        for gateway in GATEWAYS:
            site.wait_for_slots(SLOTS * len(AGENTS), gateway=gateway)
        yield KillRounds(site, stores, random.Random(seed))


def play(run: KillRounds, rounds: int, *, people: int, until: float = float("inf")) -> Notes:
    """Play the rounds against so many buyers; return what these were told."""
    wallets: list[Wallet] = [run.site.wallet() for _ in range(people)]
    with patrons(run.site, wallets, gateways=GATEWAYS, seed=run.random.getrandbits(32)) as notes:
        run.play(rounds, notes, until=until)
    return notes
