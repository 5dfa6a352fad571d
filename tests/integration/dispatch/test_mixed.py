"""A restless market: agents that fail, lie, vanish and come back, over two replicas.

Afterwards every job has ended once, no slot is taken, and the books add up.
"""

import asyncio
import dataclasses
import random
from contextlib import suppress

from app.dispatch.attempt import AttemptLimits
from app.finance.check import LedgerCheck
from supplier_agent.protocol import Accept, Busy, Cancel, Cancelled, Fail, Run
from tests.integration.dispatch.conftest import NewAgent, connect
from tests.integration.dispatch.gateways import Gateway, World, gateway
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import Placed, Wallet, fund_wallet

JOBS = 48
AGENTS = 6
RESTLESS = AttemptLimits(accept_seconds=0.5, stall_seconds=0.5, queue_seconds=2.0)
MOODS = ("serve",) * 6 + ("busy", "fail", "lie", "mute", "silent", "vanish", "twice")


class Restless:
    """Drives one agent until cancelled; what it does with a lease is drawn from a seed."""

    def __init__(self, agent: ScriptedAgent, gateways: list[Gateway], seed: int) -> None:
        self.agent = agent
        self.gateways = gateways
        self.draw = random.Random(seed)
        self.seen: set[str] = set()

    async def run(self) -> None:
        await connect(self.agent, self.draw.choice(self.gateways))
        while True:
            await self.agent.until(
                lambda: self.agent.closed.is_set() or bool(self._new()), forever=True
            )
            if self.agent.closed.is_set():
                await connect(self.agent, self.draw.choice(self.gateways))
                continue
            for message in self._new():
                if isinstance(message, Run):
                    self.seen.add(message.lease)
                    await self._act(message)
                else:
                    self.seen.add(f"cancel {message.lease}")
                    await self.agent.say(Cancelled(lease=message.lease, stream_bytes=0))

    def _new(self) -> list[Run | Cancel]:
        runs = [m for m in self.agent.all_of(Run) if m.lease not in self.seen]
        stops = [m for m in self.agent.all_of(Cancel) if f"cancel {m.lease}" not in self.seen]
        return [*runs, *stops]

    async def _act(self, run: Run) -> None:
        match self.draw.choice(MOODS):
            case "serve":
                await self.agent.serve(run)
            case "busy":
                await self.agent.say(Busy(lease=run.lease))
            case "fail":
                await self.agent.say(Accept(lease=run.lease))
                await self.agent.say(Fail(lease=run.lease, kind="engine-error", retryable=True))
            case "lie":
                await self.agent.serve(run, input_tokens=99)
            case "silent":
                await self.agent.say(Accept(lease=run.lease))
            case "vanish":
                await self.agent.say(Accept(lease=run.lease))
                await self.agent.hang_up()
            case "twice":
                await self.agent.say(await self.agent.serve(run))
            case _:
                pass


async def ask(world: World, wallet: Wallet, gateways: list[Gateway], place: int) -> Placed:
    """Accept as soon as there is a slot, at one of the replicas."""
    async with asyncio.timeout(60):
        while True:
            placed = await world.accept(wallet)
            if placed.code == "ok":
                gateways[place % len(gateways)].start(placed)
                return placed
            await asyncio.sleep(0.05)


async def test_a_restless_market_ends_every_job_once_and_its_books_add_up(
    world: World, new_agent: NewAgent
) -> None:
    shared = dataclasses.replace(world, limits=RESTLESS)
    async with (
        gateway(shared, f"one-{world.region}") as one,
        gateway(shared, f"two-{world.region}") as two,
    ):
        gateways = [one, two]
        wallets = [await fund_wallet(world.database) for _ in range(3)]
        restless = [Restless(await new_agent(), gateways, seed) for seed in range(AGENTS)]
        running = [asyncio.create_task(each.run()) for each in restless]
        placed = [await ask(world, wallets[place % 3], gateways, place) for place in range(JOBS)]
        async with asyncio.timeout(90):
            await asyncio.gather(*(one.waiters.wait(p.job_id, 90) for p in placed))
        for task in running:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*running, return_exceptions=True)
    ends = await world.row(
        "SELECT count(*) AS jobs, count(*) FILTER (WHERE state = 'completed') AS completed,"
        " count(*) FILTER (WHERE state IN ('queued', 'accepted', 'running')) AS open,"
        " (SELECT count(*) FROM offpeak.usage_record u JOIN offpeak.job x ON x.id = u.record_id"
        "   WHERE x.region = j.region) AS records"
        " FROM offpeak.job j WHERE region = :region GROUP BY region",
        region=world.region,
    )
    assert ends["open"] == 0
    assert ends["jobs"] == ends["records"] == JOBS
    assert int(str(ends["completed"])) > 0
    report = await LedgerCheck(world.database).run()
    assert report.is_clean, report.summary()
