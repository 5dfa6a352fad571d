"""A wallet's jobs as a list: newest first, in pages that neither skip nor repeat."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from app.config import Settings
from app.wallets.read_access import read_access_header
from ledger.accounts import wallet_account
from ledger.authorization import authorization_domain
from ledger.encoding import Address, parse_address
from tests.integration.gateway.conftest import Wallet, read_access

JOBS = 50_000
MOST_BUFFERS = 700
"""Pages of the database that one list may touch; a scan of all these jobs touches thousands."""
SEED = """
WITH ids AS (
  SELECT n, ('01990000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id
    FROM generate_series(1, %(count)s) AS n
), jobs AS (
  INSERT INTO offpeak.job(id, account_id, authorization_digest, kind, state, release, region, asset,
      input_tokens, max_output_tokens, input_rate, output_rate, per_request, ask_ceiling,
      model_revision, run_seconds, accepted_at, deadline_at, ended_at, content_until)
  SELECT id, %(account)s, decode(md5(%(account)s::text || n), 'hex'), 'interactive', 'completed',
         'smollm2-135m-instruct', 'local', 'x', 1, 1, 1, 1, 1, 1, '\\x00', 1,
         now(), now(), now(), now()
    FROM ids
), holds AS (
  INSERT INTO offpeak.hold(id, account_id, amount, created_at, expires_at)
  SELECT id, %(account)s, n + 1, now(), now() FROM ids RETURNING id
)
SELECT count(*) FROM holds
"""
RESOLVE = (
    "INSERT INTO offpeak.hold_resolution(hold_id, amount, kind, charged, released, resolved_at)"
    " SELECT id, amount, 'settled', amount - 1, 1, now() FROM offpeak.hold WHERE account_id = %s"
)
DROP_RESOLUTIONS = (
    "DELETE FROM offpeak.hold_resolution r USING offpeak.hold h"
    " WHERE h.id = r.hold_id AND h.account_id = %s"
)


@pytest.fixture
def account(settings: Settings, wallet: Wallet) -> UUID:
    return wallet_account(wallet.address, parse_address(settings.token_address))


@pytest.fixture
def many_jobs(database_url: str, account: UUID) -> Iterator[None]:
    """50,000 ended jobs of one wallet; gone afterwards."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(SEED, {"count": JOBS, "account": account})
        connection.execute(RESOLVE, (account,))
        connection.execute("ANALYZE offpeak.job, offpeak.hold, offpeak.hold_resolution")
        yield
        for query in (
            DROP_RESOLUTIONS,
            "DELETE FROM offpeak.hold WHERE account_id = %s",
            "DELETE FROM offpeak.job WHERE account_id = %s",
        ):
            connection.execute(query, (account,))


def header(settings: Settings, wallet: Wallet, scope: str = "jobs") -> dict[str, str]:
    access = read_access(wallet, scope=scope, valid_until=int(time.time()) + 60)
    treasury: Address = parse_address(settings.treasury_address)
    domain = authorization_domain(chain_id=settings.chain_id, treasury=treasury)
    return {"Authorization": read_access_header(access, wallet.key.sign(access.digest(domain)))}


async def page(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet, **query: object
) -> Any:
    params = {name: str(value) for name, value in query.items()}
    answer = await client.get("/v1/jobs", params=params, headers=header(settings, wallet))
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.usefixtures("many_jobs")
async def test_pages_of_50_000_jobs_come_newest_first_without_gap_or_repetition(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet
) -> None:
    seen: list[str] = []
    before: dict[str, str] = {}
    for _ in range(5):
        listed = await page(client, settings, wallet, limit=100, **before)
        seen += [job["id"] for job in listed["jobs"]]
        before = {"before": listed["next"]}
    expected = [f"job_01990000-0000-7000-8000-{n:012x}" for n in range(JOBS, JOBS - 500, -1)]
    assert seen == expected
    [last] = (await page(client, settings, wallet, limit=1))["jobs"]
    assert (last["held"], last["charge"]) == ("0.000050001", "0.000050000")
    old = await page(client, settings, wallet, before="job_01990000-0000-7000-8000-000000000003")
    assert ([job["id"][-1] for job in old["jobs"]], old["next"]) == (["2", "1"], None)


@pytest.mark.usefixtures("many_jobs")
async def test_a_page_deep_in_50_000_jobs_reads_little(database_url: str, account: UUID) -> None:
    query = (
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
        " SELECT j.id FROM offpeak.job j JOIN offpeak.hold h ON h.id = j.id"
        " LEFT JOIN offpeak.hold_resolution r ON r.hold_id = j.id"
        " WHERE j.account_id = %s AND j.id < '01990000-0000-7000-8000-000000003000'"
        " ORDER BY j.id DESC LIMIT 101"
    )
    with psycopg.connect(database_url) as connection:
        found = connection.execute(query, (account,)).fetchone()
    assert found
    plan = found[0][0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < MOST_BUFFERS


async def test_a_wallet_without_jobs_gets_an_empty_list(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet
) -> None:
    assert await page(client, settings, wallet) == {"jobs": [], "next": None}


async def test_a_list_needs_read_access_of_scope_jobs(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet
) -> None:
    assert (await client.get("/v1/jobs")).json()["code"] == "read-access-missing"
    headers = header(settings, wallet, scope="balances")
    assert (await client.get("/v1/jobs", headers=headers)).json()["code"] == "wrong-scope"


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "before=job_1", "before=quote_x"])
async def test_a_page_that_cannot_be_is_refused(
    client: httpx.AsyncClient, settings: Settings, wallet: Wallet, query: str
) -> None:
    answer = await client.get(f"/v1/jobs?{query}", headers=header(settings, wallet))
    assert answer.status_code in (404, 422)
