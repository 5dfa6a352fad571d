"""SIGKILL of an agent while another has spare slots: what its buyers see, and how soon it moved."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from tests.acceptance.endstate import RUNNING_JOBS, come_to_rest, count, rows
from tests.acceptance.town import Town
from tests.waiting import wait_until

JOBS_AT_ONCE = 8
NOW = "SELECT clock_timestamp() AS at"
MOVED = (
    "SELECT old.ended_at, new.started_at FROM offpeak.lease old JOIN offpeak.lease new"
    " ON new.job_id = old.job_id AND new.attempt = old.attempt + 1"
    " WHERE old.reason = 'agent-lost' AND old.ended_at > '{since}'"
)


@dataclass(frozen=True, slots=True)
class Moves:
    """Seconds of each moved job, by the database clock."""

    between_leases: list[float]
    """From the old lease's end to the new one's start."""
    since_kill: list[float]
    """From just before the SIGKILL to the new lease's start."""


def kill_an_agent(town: Town) -> Moves:
    """Kill the busiest agent; every job must be answered. Returns how its own moved."""
    town.hold()
    buyers = [town.site.buyer(gateway="gateway-b") for _ in range(JOBS_AT_ONCE)]
    with ThreadPoolExecutor(max_workers=JOBS_AT_ONCE) as pool:
        asked = [pool.submit(buyer.client.ask, buyer.checked_quote()) for buyer in buyers]
        wait_until(lambda: count(town.site, RUNNING_JOBS) == JOBS_AT_ONCE)
        [killed] = rows(town.site, NOW)
        victim = town.busiest_agent()
        town.site.kill(victim)
        town.let_go()
        for one in asked:
            assert one.result().state == "completed"
    come_to_rest(town.site)
    moves = moved_since(town, killed.at)
    town.start(victim)
    town.wait_for_slots()
    return moves


def moved_since(town: Town, killed_at: datetime) -> Moves:
    """Return the moves after a kill."""
    found = rows(town.site, MOVED.format(since=killed_at.isoformat()))
    return Moves(
        [(row.started_at - row.ended_at).total_seconds() for row in found],
        [(row.started_at - killed_at).total_seconds() for row in found],
    )
