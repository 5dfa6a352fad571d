"""What is accepted is answered once and charged once, whoever dies on the way."""

from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest

from app.client.documents import JobDocument
from app.client.errors import ProblemError
from tests.acceptance.site import REPLY, Site
from tests.waiting import wait_until


def running_jobs(site: Site) -> int:
    with psycopg.connect(site.database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM offpeak.job WHERE state IN ('accepted', 'running')"
        ).fetchone()
        assert row
        return int(row[0])


def assert_each_answered_and_charged_once(site: Site, jobs: list[JobDocument]) -> None:
    assert len({job.id for job in jobs}) == len(jobs)
    for job in jobs:
        assert job.state == "completed"
        assert job.answer is not None
        assert job.answer.content == REPLY
    wait_until(lambda: running_jobs(site) == 0)
    with psycopg.connect(site.database_url) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM offpeak.job),"
            " (SELECT count(*) FROM offpeak.hold_resolution WHERE kind = 'settled'),"
            " (SELECT sum(held) FROM offpeak.wallet_balance)"
        ).fetchone()
    assert row == (len(jobs), len(jobs), 0)
    report = site.ledger()
    assert report.is_clean, report.summary()


def ask_ten(site: Site, victim: str) -> list[JobDocument]:
    """Have ten jobs running, kill the victim, start it again, return what became of the jobs."""
    buyers = [site.buyer() for _ in range(10)]
    with ThreadPoolExecutor(max_workers=10) as pool:
        asked: list[Future[JobDocument]] = [
            pool.submit(buyer.ask_until_answered, timeout_seconds=90) for buyer in buyers
        ]
        wait_until(lambda: running_jobs(site) == 10)
        site.kill(victim)
        restart(site, victim)
        return [future.result() for future in asked]


def restart(site: Site, victim: str) -> None:
    if victim == "gateway":
        site.gateway()
    elif victim == "worker":
        site.worker()
    elif victim.startswith("agent"):
        site.agent(victim, engine=victim.replace("agent", "engine"), slots=16)
    else:
        site.engine(victim, slots=16, delay_seconds=0.3)


@pytest.mark.parametrize("victim", ["gateway", "worker", "agent-1", "engine-1"])
def test_a_kill_in_the_middle_of_ten_running_jobs_loses_none_and_charges_none_twice(
    site: Site, victim: str
) -> None:
    site.gateway()
    site.worker()
    for number in (1, 2):
        site.engine(f"engine-{number}", slots=16, delay_seconds=0.3)
        site.agent(f"agent-{number}", engine=f"engine-{number}", slots=16)
    site.wait_for_slots(32)

    jobs = ask_ten(site, victim)

    assert_each_answered_and_charged_once(site, jobs)


def test_a_job_whose_only_agent_dies_fails_within_seconds_and_costs_nothing(site: Site) -> None:
    site.engine(slots=4, delay_seconds=2)
    site.gateway()
    site.worker()
    site.agent("agent", engine="engine", slots=4)
    site.wait_for_slots(4)
    buyer = site.buyer()

    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(buyer.ask_until_answered)
        wait_until(lambda: running_jobs(site) == 1)
        site.kill("agent")
        with pytest.raises(ProblemError) as refusal:
            asked.result()

    assert (refusal.value.status, refusal.value.code) == (502, "job-failed")
    assert "no-capacity" in refusal.value.detail
    balance = buyer.client.balance()
    assert (balance.available, balance.held) == ("1.000000000", "0.000000000")
    assert site.ledger().is_clean
