"""What is accepted is answered once and charged once, whoever dies on the way."""

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import pytest

from app.client.documents import JobDocument
from app.client.errors import ProblemError
from app.kit.ids import IdPrefix, parse_id
from ledger.encoding import Address
from tests.acceptance.endstate import (
    OPEN_JOBS,
    RUNNING_JOBS,
    assert_as_told,
    assert_money,
    come_to_rest,
    count,
    jobs_of,
    rows,
)
from tests.acceptance.redispatch import kill_an_agent
from tests.acceptance.site import Buyer
from tests.acceptance.town import Town
from tests.waiting import wait_until

ASKED = 10
ATTEMPTS = (
    "SELECT l.job_id, max(l.attempt)::int AS attempts FROM offpeak.lease l"
    " JOIN offpeak.job j ON j.id = l.job_id WHERE j.state = 'running' GROUP BY 1"
)


def payer_of(buyer: Buyer) -> Address:
    return buyer.client.wallet.address


def have_running(
    town: Town, pool: ThreadPoolExecutor, buyers: list[Buyer]
) -> list[Future[JobDocument]]:
    """Ask once per buyer; return when all are running and none can be answered."""
    town.hold()
    asked = [pool.submit(buyer.ask_until_answered, timeout_seconds=90) for buyer in buyers]
    wait_until(lambda: count(town.site, RUNNING_JOBS) == len(buyers))
    return asked


def assert_each_answered_and_charged_once(
    town: Town, buyers: list[Buyer], asked: list[Future[JobDocument]]
) -> None:
    told = {job.id: job for job in (one.result() for one in asked)}
    come_to_rest(town.site)
    stored = jobs_of(town.site, {payer_of(buyer) for buyer in buyers})
    assert stored.keys() == told.keys()
    assert len(told) == len(buyers)
    for job_id, row in stored.items():
        assert_as_told(row, told[job_id])
        assert (row.records, row.charges) == (1, 1)
    assert_money(town.site)


def attempts(town: Town) -> dict[UUID, int]:
    """Return how often each job that runs now was begun: once, or again by a busy engine."""
    return {row.job_id: row.attempts for row in rows(town.site, ATTEMPTS)}


def stop_while_it_answers(town: Town, name: str) -> int:
    """SIGTERM a process, and only then let what it serves be answered; return its exit status."""
    process = town.site.processes[name]
    process.signal(signal.SIGTERM)
    town.let_go()
    return process.wait(60)


@pytest.mark.parametrize("victim", ["gateway-a", "worker", "agent-1", "engine-1"])
def test_a_kill_in_the_middle_of_ten_running_jobs_loses_none_and_charges_none_twice(
    town: Town, victim: str
) -> None:
    buyers = [town.site.buyer(gateway="gateway-a") for _ in range(ASKED)]
    with ThreadPoolExecutor(max_workers=ASKED) as pool:
        asked = have_running(town, pool, buyers)
        town.kill_and_restart(victim)
        town.let_go()
        assert_each_answered_and_charged_once(town, buyers, asked)
    assert {one.result().state for one in asked} == {"completed"}


def test_a_gateway_that_is_told_to_stop_in_mid_flight_loses_nothing_and_exits_with_0(
    town: Town,
) -> None:
    buyers = [town.site.buyer(gateway=name) for name in ("gateway-a", "gateway-b") * 5]
    with ThreadPoolExecutor(max_workers=ASKED) as pool:
        asked = have_running(town, pool, buyers)
        begun = attempts(town)
        assert stop_while_it_answers(town, "gateway-a") == 0
        town.start("gateway-a")
        assert_each_answered_and_charged_once(town, buyers, asked)
    assert {
        parse_id(IdPrefix.JOB, one.result().id): one.result().attempts for one in asked
    } == begun


def test_an_agent_that_is_told_to_stop_finishes_what_it_runs(town: Town) -> None:
    buyers = [town.site.buyer(gateway="gateway-b") for _ in range(ASKED)]
    with ThreadPoolExecutor(max_workers=ASKED) as pool:
        asked = have_running(town, pool, buyers)
        begun = attempts(town)
        assert stop_while_it_answers(town, "agent-1") == 0
        assert_each_answered_and_charged_once(town, buyers, asked)
    assert {
        parse_id(IdPrefix.JOB, one.result().id): one.result().attempts for one in asked
    } == begun


def test_buyers_see_nothing_of_an_agents_death_while_spare_slots_exist(town: Town) -> None:
    assert kill_an_agent(town).between_leases


def test_a_job_whose_only_agent_dies_fails_within_seconds_and_costs_nothing(town: Town) -> None:
    assert town.stop("agent-1") == 0
    town.pace("engine-2", 2.0)
    buyer = town.site.buyer(gateway="gateway-a")

    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(buyer.ask_until_answered)
        wait_until(lambda: count(town.site, OPEN_JOBS) == 1)
        town.site.kill("agent-2")
        with pytest.raises(ProblemError) as refusal:
            asked.result()

    assert (refusal.value.status, refusal.value.code) == (502, "job-failed")
    assert "agent-lost" in refusal.value.detail
    balance = buyer.client.balance()
    assert (balance.available, balance.held) == ("1.000000000", "0.000000000")
    assert_money(town.site)
