"""The acceptance tests for longer: `python -m tests.acceptance.soak [--minutes N] [--rounds N]`.

From the repository's root. Starts the town of `town.py` and does, one after another, the parts
named (all by default): `rush` (100 repeats of k of 64 over two gateways), `redispatch` (20 kills of
an agent), `heartbeats` (200 agents, 60 s), `mixed` (64 clients, 8 agents, 60 s, a site of its own)
and `kills` (`--rounds` rounds, 200 by default). No part begins, and kills stop, when `--minutes`
are over. Prints figures as it goes; ends with status 1 at the first thing that does not hold.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.acceptance import mixed
from tests.acceptance.endstate import assert_money, assert_whole
from tests.acceptance.evidence import assert_evidence
from tests.acceptance.heartbeats import beating
from tests.acceptance.kill_rounds import KillRounds
from tests.acceptance.redispatch import kill_an_agent
from tests.acceptance.rush import exactly, rush
from tests.acceptance.site import Site
from tests.acceptance.stores import Stores
from tests.acceptance.town import FLAT_CURVE, GATEWAYS, SLOTS, Town, running_town

RUSHES = 100
AGENT_KILLS = 20
MIXED_SECONDS = 60
MIXED_AGENTS = 8
MIXED_CLIENTS = 64


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def soak_rush(town: Town, chance: random.Random) -> None:
    """Admit exactly k, again and again."""
    for repeat in range(RUSHES):
        k = chance.randint(1, SLOTS)
        assert rush(town, k) == exactly(k)
        if repeat % 10 == 9:
            say(f"rush        {repeat + 1} of {RUSHES} repeats exact")
    assert_money(town.site)


def soak_redispatch(town: Town) -> None:
    """Kill an agent again and again; no buyer sees it."""
    between: list[float] = []
    since: list[float] = []
    for _ in range(AGENT_KILLS):
        moves = kill_an_agent(town)
        between += moves.between_leases
        since += moves.since_kill
    p50 = statistics.median(between) * 1e3
    say(f"redispatch  {AGENT_KILLS} kills, {len(between)} jobs moved, 0 buyer errors")
    say(f"redispatch  old lease's end to new lease's start p50 {p50:.1f} ms")
    say(f"redispatch  kill to new lease p50 {statistics.median(since) * 1e3:.0f} ms")


def soak_heartbeats(town: Town) -> None:
    """Hold 200 agents' sessions, 30 % of the heartbeats late."""
    agents = 200
    found = beating(town.site, gateway="gateway-a", agents=agents, late_beats=6)
    closed, online = asyncio.run(found)
    say(f"heartbeats  {agents} agents, {closed} closed, {online} online after 60 s")
    assert (closed, online) == (0, agents)


def soak_mixed(folder: Path) -> None:
    """Run 64 clients against 8 agents, three of whose engines fail in turns."""
    with Stores() as stores, Site(stores.database_url, stores.redis_url, folder) as site:
        for gateway in GATEWAYS:
            site.gateway(gateway, offpeak_price_curve=FLAT_CURVE)
        site.worker()
        for place in range(MIXED_AGENTS):
            site.engine(f"engine-{place}", slots=4, delay_seconds=0.02)
            gateway = GATEWAYS[place % 2]
            site.agent(f"agent-{place}", engine=f"engine-{place}", gateway=gateway, slots=4)
        site.wait_for_slots(4 * MIXED_AGENTS, gateway=GATEWAYS[0])
        notes = mixed.play(
            site,
            seconds=MIXED_SECONDS,
            clients=MIXED_CLIENTS,
            gateways=GATEWAYS,
            failing=["engine-0", "engine-1", "engine-2"],
            slots=4,
            seed=7,
        )
        mixed.assert_sound(site, notes, slots=4)
        say(f"mixed       {len(notes.jobs)} jobs answered, {len(notes.failed)} failed unbilled")
        say(f"mixed       refusals {dict(notes.refusals)}; 0 oversold, 0 overspent, ledger clean")


def soak_kills(town: Town, chance: random.Random, *, rounds: int, until: float) -> None:
    """Kill at random points."""
    run = KillRounds(town, chance)
    notes = run.play(rounds, people=6, until=until)
    assert_whole(town.site, notes)
    assert_evidence(town.site)
    say(f"kills       {sum(run.kills.values())} rounds {dict(run.kills)}")
    say(f"kills       {len(notes.jobs)} jobs answered, 0 lost, 0 charged twice, ledger clean")
    say(f"kills       {len(notes.failed)} failed unbilled: {sorted(notes.failed.values())}")
    say(f"kills       {notes.repeats} acceptances repeated; refusals {dict(notes.refusals)}")
    for part, seconds in sorted(run.recoveries.items()):
        middle, worst = statistics.median(seconds), max(seconds)
        say(f"kills       back after {part}: p50 {middle:.1f} s, worst {worst:.1f} s")


def main() -> None:
    """Run what was asked for."""
    parts = ("rush", "redispatch", "heartbeats", "mixed", "kills")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=f"of {', '.join(parts)}")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    chance = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="offpeak-soak-"))
    say(f"logs        {folder}")
    wanted = options.parts or parts
    if set(wanted) - {"mixed"}:
        soak_town(folder, wanted, rounds=options.rounds, until=until, chance=chance)
    if "mixed" in wanted and time.monotonic() < until:
        (folder / "mixed").mkdir()
        soak_mixed(folder / "mixed")


def soak_town(
    folder: Path, wanted: Sequence[str], *, rounds: int, until: float, chance: random.Random
) -> None:
    """Do the parts that share a town."""
    with running_town(folder) as town:
        steps: dict[str, Callable[[], None]] = {
            "rush": lambda: soak_rush(town, chance),
            "redispatch": lambda: soak_redispatch(town),
            "heartbeats": lambda: soak_heartbeats(town),
            "kills": lambda: soak_kills(town, chance, rounds=rounds, until=until),
        }
        for part, step in steps.items():
            if part in wanted and time.monotonic() < until:
                town.repair()
                step()


if __name__ == "__main__":
    main()
