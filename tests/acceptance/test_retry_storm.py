"""A client that repeats itself, as SDKs do, pays once; nobody else reads what it got."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.documents import JobDocument
from app.client.errors import ProblemError
from app.db.engine import open_database
from app.jobs.sweeper import Sweeper
from app.kit.ids import IdPrefix, parse_id
from ledger.authorization import ReadAccess
from tests.acceptance.endstate import assert_money, jobs_of
from tests.acceptance.site import REPLY, Site
from tests.acceptance.town import GATEWAYS, Town

REPEATS = 20


def accepted(client: Client, checked: CheckedQuote, *, wait: int) -> httpx.Response:
    """Send an acceptance as a plain HTTP client would."""
    body = {
        "quote": checked.document.quote,
        "quote_signature": checked.document.signature,
        "request": checked.asked.question.request(),
        "salt": "0x" + checked.asked.salt.hex(),
        "authorization": checked.authorization.message(),
        "signature": "0x" + client.wallet.sign_quote(checked).hex(),
    }
    url = f"{client._transport.url}/v1/requests"
    return httpx.post(url, json=body, headers={"Prefer": f"wait={wait}"}, timeout=60)


def test_twenty_concurrent_copies_and_later_ones_are_one_job_one_charge_one_answer(
    town: Town,
) -> None:
    buyers = [town.site.buyer(gateway=GATEWAYS[0])]
    buyers.append(town.site.buyer_of(buyers[0].client.wallet, GATEWAYS[1]))
    checked = buyers[0].client.quote(buyers[0].question())
    with ThreadPoolExecutor(max_workers=REPEATS) as pool:
        copies = [
            pool.submit(buyers[place % 2].client.accept, checked, wait_seconds=30)
            for place in range(REPEATS)
        ]
        told = [copy.result() for copy in copies]
    told += [buyer.client.accept(checked, wait_seconds=30) for buyer in buyers]

    assert told == [told[0]] * (REPEATS + 2)
    assert told[0].answer is not None
    assert told[0].answer.content == REPLY
    [(job_id, row)] = jobs_of(town.site, {buyers[0].client.wallet.address}).items()
    assert (job_id, row.charges, row.records) == (told[0].id, 1, 1)
    assert_money(town.site)


def test_who_does_not_wait_gets_202_and_the_jobs_url_which_only_its_wallet_may_read(
    town: Town,
) -> None:
    buyer, stranger = (town.site.buyer(gateway="gateway-b") for _ in range(2))
    answer = accepted(buyer.client, buyer.client.quote(buyer.question()), wait=0)
    assert answer.status_code == 202
    job = JobDocument.model_validate(answer.json())
    assert answer.headers["location"] == f"/v1/jobs/{job.id}"

    ended = buyer.client.result(buyer.client.job(job.id), wait_seconds=60)
    assert ended.answer is not None
    assert ended.answer.content == REPLY
    with pytest.raises(ProblemError) as refused:
        stranger.client.job(job.id)
    assert (refused.value.status, refused.value.code) == (404, "job-not-found")


def test_a_read_access_that_is_over_reads_nothing(town: Town) -> None:
    client = town.site.buyer(gateway="gateway-b").client
    over = ReadAccess(client.wallet.address, "balances", int(time.time()) - 1, bytes(32))
    header = client.wallet.read_header(over, client.terms.domain)
    url = f"{town.site.urls['gateway-b']}/v1/balances"
    answer = httpx.get(url, headers={"Authorization": header}, timeout=10)
    assert (answer.status_code, answer.json()["code"]) == (401, "read-access-expired")


def test_after_the_retention_time_the_text_is_gone_and_the_record_stays(town: Town) -> None:
    buyer = town.site.buyer(gateway="gateway-b")
    before = buyer.ask_until_answered()
    job_id = parse_id(IdPrefix.JOB, before.id)
    with psycopg.connect(town.site.database_url) as connection:
        connection.execute(
            "UPDATE offpeak.job SET content_until = now() - interval '1 s' WHERE id = %s", (job_id,)
        )
    asyncio.run(purge(town.site))

    after = buyer.client.job(before.id)
    assert after.answer is None
    assert after == before.model_copy(update={"answer": None})
    with psycopg.connect(town.site.database_url) as connection:
        row = connection.execute(
            "SELECT request, result FROM offpeak.job WHERE id = %s", (job_id,)
        ).fetchone()
    assert row == (None, None)


async def purge(site: Site) -> None:
    database = open_database(site.database_url, pool_size=1)
    await Sweeper(database).purge_once()
    await database.dispose()
