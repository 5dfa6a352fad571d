"""A late heartbeat is not a death."""

from tests.acceptance.heartbeats import beating
from tests.acceptance.town import Town

AGENTS = 200


async def test_200_agents_of_which_30_percent_are_5_s_late_are_all_kept(town: Town) -> None:
    closed, online = await beating(town.site, gateway="gateway-a", agents=AGENTS, late_beats=1)

    assert (closed, online) == (0, AGENTS)
