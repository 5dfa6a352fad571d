"""A clean stop is a success."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import LiteralString

import httpx
import psycopg
import pytest

from tests.acceptance.site import Site
from tests.waiting import wait_until


@pytest.mark.parametrize("name", ["gateway", "worker"])
def test_sigterm_ends_a_server_with_status_0(site: Site, name: str) -> None:
    site.gateway()
    if name == "worker":
        site.worker()
    process = site.processes[name]

    process.signal(signal.SIGTERM)

    assert process.wait(30) == 0


def test_a_stopping_gateway_answers_who_waits_and_settles_what_runs(site: Site) -> None:
    url = site.gateway()
    site.worker()
    site.engine(slots=4, delay_seconds=0.4)
    site.agent("agent", engine="engine")
    site.wait_for_slots(4)
    buyer = site.buyer()
    with ThreadPoolExecutor(max_workers=1) as pool:
        offer = buyer.client.quote(buyer.question())
        asked = pool.submit(buyer.client.accept, offer, wait_seconds=60)
        wait_until(lambda: count(site, "job WHERE state = 'running'") == 1)
        process = site.processes["gateway"]
        process.signal(signal.SIGTERM)
        unfinished = asked.result(timeout=30)
        assert not unfinished.ended  # 202 with its place, while the job goes on
        assert httpx.get(f"{url}/readyz", timeout=5).status_code == 503
        assert process.wait(30) == 0
    assert count(site, "job WHERE state = 'completed'") == 1
    assert count(site, "lease WHERE state = 'done'") == 1  # by this gateway, the only one
    site.gateway()
    assert buyer.client.job(unfinished.id).ended


def count(site: Site, what: LiteralString) -> int:
    with psycopg.connect(site.database_url) as connection:
        row = connection.execute("SELECT count(*) FROM offpeak." + what).fetchone()
        assert row
        return int(row[0])
