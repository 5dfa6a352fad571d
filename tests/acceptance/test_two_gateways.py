"""Gateways on one Postgres serve each other's agents; Valkey makes it quick, not possible."""

import httpx

from tests.acceptance.endstate import assert_money, rows
from tests.acceptance.site import REPLY, Buyer, Site
from tests.acceptance.town import Town
from tests.waiting import wait_until

WHO_RAN = (
    "SELECT s.replica FROM offpeak.lease l JOIN offpeak.agent_session s USING (agent_id)"
    " ORDER BY l.started_at DESC LIMIT 1"
)


def readiness(url: str) -> tuple[int, str, str]:
    answer = httpx.get(f"{url}/readyz", timeout=10)
    body = answer.json()
    return answer.status_code, body["status"], body["checks"]["valkey"]


def assert_answered(buyer: Buyer) -> None:
    job = buyer.ask_until_answered()
    assert job.answer is not None
    assert job.answer.content == REPLY
    assert job.attempts == 1


def test_a_buyer_at_one_gateway_is_served_by_the_other_ones_agent_with_and_without_valkey(
    town: Town,
) -> None:
    assert town.stop("agent-1") == 0
    buyer = town.site.buyer(gateway="gateway-a")
    assert_answered(buyer)
    assert [row.replica for row in rows(town.site, WHO_RAN)] == ["gateway-b"]

    town.stores.kill_valkey()
    url = town.site.urls["gateway-a"]
    assert readiness(url) == (200, "degraded", "unreachable")
    assert_answered(buyer)
    assert [row.replica for row in rows(town.site, WHO_RAN)] == ["gateway-b"]

    town.stores.start_valkey()
    wait_until(lambda: readiness(url) == (200, "ready", "ok"))
    assert_answered(buyer)
    assert_money(town.site)


def test_without_any_valkey_a_gateway_is_degraded_and_ready_and_serves(site: Site) -> None:
    site.redis_url = None
    url = site.gateway()
    assert readiness(url) == (200, "degraded", "not configured")
    site.worker()
    site.engine()
    site.agent("agent", engine="engine")
    site.wait_for_slots(4)
    assert_answered(site.buyer())
    assert_money(site)
