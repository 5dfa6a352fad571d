"""Many agents in one process, some of them late with every heartbeat."""

import asyncio
from itertools import count
from uuid import UUID

from sqlalchemy import bindparam, text

from app.db.engine import open_database
from supplier_agent.protocol import HEARTBEAT_SECONDS, Heartbeat
from tests.acceptance.site import Site
from tests.integration.dispatch.scripted_agent import ScriptedAgent
from tests.integration.seed import register_agent

LATE_PERCENT = 30
LATE_SECONDS = 5.0
LONGEST_PACE = HEARTBEAT_SECONDS + LATE_SECONDS
ONLINE = text(
    "SELECT count(*) FROM offpeak.agent_session"
    " WHERE agent_id IN :agents AND state = 'online' AND NOT stale"
).bindparams(bindparam("agents", expanding=True))


async def beating(site: Site, *, gateway: str, agents: int, late_beats: int) -> tuple[int, int]:
    """Hold so many sessions until the late 30 % of them have sent so many heartbeats each.

    Returns how many connections the gateway closed, and how many sessions are online at the end.
    """
    database = open_database(site.database_url, pool_size=5)
    seeded = [await register_agent(database) for _ in range(agents)]
    people = [ScriptedAgent(one, fingerprint="", region="elsewhere") for one in seeded]
    url = site.urls[gateway].replace("http://", "ws://")
    steady: set[int] = set()
    all_steady = asyncio.Event()

    async def beat(place: int) -> None:
        """Dial, and beat from then on: two hundred dials may take as long as an agent is fresh."""
        await people[place].dial(url)
        late = place * 100 < agents * LATE_PERCENT
        pace = HEARTBEAT_SECONDS + (LATE_SECONDS if late else 0)
        for seq in count():
            await asyncio.sleep(pace)  # the heartbeat's own pace, which is what is on trial
            await people[place].say(Heartbeat(seq=seq))
            if (seq + 1) * pace >= late_beats * LONGEST_PACE:
                steady.add(place)
            if len(steady) == agents:
                all_steady.set()

    beats = [asyncio.create_task(beat(place)) for place in range(agents)]
    await asyncio.wait(
        [*beats, asyncio.create_task(all_steady.wait())], return_when=asyncio.FIRST_COMPLETED
    )
    closed = sum(person.closed.is_set() for person in people)
    ids: list[UUID] = [one.agent_id for one in seeded]
    async with database.transaction() as tx:
        online = int(await tx.scalar(ONLINE, {"agents": ids}) or 0)
    for task in beats:
        task.cancel()
    await asyncio.gather(*beats, return_exceptions=True)
    await asyncio.gather(*(person.leave() for person in people))
    await database.dispose()
    return closed, online
