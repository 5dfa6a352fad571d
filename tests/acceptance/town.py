"""The site that many tests share: two gateways, a worker, two agents, stores of its own."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.acceptance.endstate import rows
from tests.acceptance.site import Site
from tests.acceptance.stores import Stores

GATEWAYS = ("gateway-a", "gateway-b")
AGENTS = {"agent-1": "gateway-a", "agent-2": "gateway-b"}
"""Each with the gateway that it dials."""
ENGINES = ("engine-1", "engine-2")
SLOTS = 16
PACE_SECONDS = 0.03
"""Between an engine's tokens, so that kills meet jobs in every stage."""
HELD_SECONDS = 60.0
"""Between the tokens of an engine that is held."""
BUSIEST = (
    "SELECT s.name FROM offpeak.lease l JOIN offpeak.deployment d ON d.id = l.deployment_id"
    " JOIN offpeak.agent a ON a.id = d.agent_id JOIN offpeak.supplier s ON s.id = a.supplier_id"
    " WHERE l.state = 'active' GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
)
FLAT_CURVE = "[[0, 1000000], [1000000, 1000000]]"
"""Prices that do not follow the load, so that quotes of one second cost the same."""

FORGIVE = "UPDATE offpeak.agent SET resting_until = NULL, rests = 0, fault_times = '{}'"


@dataclass
class Town:
    """Everything runs; whatever a test takes down comes back by `repair`."""

    site: Site
    stores: Stores

    def repair(self) -> None:
        """Start what does not run, at the usual pace; return once every slot can be bought."""
        if not self.stores.is_postgres_up:
            self.stores.start_postgres()
        if not self.stores.is_valkey_up:
            self.stores.start_valkey()
        # at once: what a process does to start is mostly done alone
        with ThreadPoolExecutor() as pool:
            for names in ((*GATEWAYS, "worker", *ENGINES), tuple(AGENTS)):
                down = [name for name in names if not self.runs(name)]
                list(pool.map(self.start, down))
        for engine in ENGINES:
            self.pace(engine, PACE_SECONDS)
        self.forgive()
        self.wait_for_slots()

    def forgive(self) -> None:
        """End every agent's rest: a killed engine fails many jobs at once, and rests long."""
        with psycopg.connect(self.site.database_url) as connection:
            connection.execute(FORGIVE)

    def runs(self, name: str) -> bool:
        """Whether a process of this name runs."""
        process = self.site.processes.get(name)
        return process is not None and process.status() is None

    def start(self, name: str) -> None:
        """Start one of the processes, again where it was."""
        if name in GATEWAYS:
            self.site.gateway(name, offpeak_price_curve=FLAT_CURVE)
        elif name == "worker":
            self.site.worker()
        elif name in ENGINES:
            self.site.engine(name, slots=SLOTS, delay_seconds=PACE_SECONDS)
        else:
            engine = name.replace("agent", "engine")
            self.site.agent(name, engine=engine, gateway=AGENTS[name], slots=SLOTS)

    def kill_and_restart(self, name: str) -> None:
        """SIGKILL a process or a store and start it again at once."""
        if name == "postgres":
            self.stores.kill_postgres()
            self.stores.start_postgres()
        elif name == "valkey":
            self.stores.kill_valkey()
            self.stores.start_valkey()
        else:
            self.site.kill(name)
            self.start(name)

    def stop(self, name: str, *, timeout_seconds: float = 60) -> int:
        """SIGTERM a process; return its exit status."""
        process = self.site.processes[name]
        process.signal(signal.SIGTERM)
        return process.wait(timeout_seconds)

    def pace(self, engine: str, seconds: float) -> None:
        """Let an engine answer honestly, with so long between two tokens."""
        self.site.script(engine, fault="slow", delay_seconds=seconds)

    def hold(self) -> None:
        """Let no engine finish anything before `let_go`, so that a kill meets all that runs."""
        for engine in ENGINES:
            self.pace(engine, HELD_SECONDS)

    def let_go(self) -> None:
        """Let what was held be answered, and all that follows, at the usual pace."""
        for engine in ENGINES:
            if self.runs(engine):
                self.pace(engine, PACE_SECONDS)

    def busiest_agent(self) -> str:
        """Return the agent that runs the most jobs."""
        return str(rows(self.site, BUSIEST)[0].name)

    def are_slots_on_offer(self) -> bool:
        """Whether the slots of every agent can be bought at either gateway."""
        return all(
            self.site.are_slots_on_offer(SLOTS * len(AGENTS), gateway=gateway)
            for gateway in GATEWAYS
        )

    def wait_for_slots(self, agents: int = len(AGENTS)) -> None:
        """Return once the slots of so many agents can be bought at either gateway."""
        for gateway in GATEWAYS:
            self.site.wait_for_slots(SLOTS * agents, gateway=gateway)


@contextmanager
def running_town(folder: Path) -> Iterator[Town]:
    """Start everything; end everything with the block."""
    with Stores() as stores, Site(stores.database_url, stores.redis_url, folder) as site:
        town = Town(site, stores)
        town.repair()
        yield town
