"""What exports and their check cost: `python -m tests.bench.exporting RECORDS FORMAT...`.

Makes a database of so many sealed records of one month, exports it in each format as a process of
its own, and checks the folder with `offpeak-verify`. Prints seconds and the peak of resident
memory.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from app.db.engine import open_database
from app.receipts.record import RecordSigner
from app.receipts.sequencer import Sequencer
from app.receipts.service import RecordService
from tests.engines import RunningCluster
from tests.integration.books import ASSET
from tests.integration.finance.exporting import policy
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, seed, terms

WALLETS = 1_000
BATCH = 5_000
ACCOUNT = "offpeak._account_id('wallet', payer, %(asset)s)"
FILL = f"""
INSERT INTO offpeak.account(id, owner, asset, kind)
SELECT offpeak._account_id(k, o, %(asset)s), o, %(asset)s, k
  FROM (SELECT 'wallet' AS k, '0x' || lpad(to_hex(n), 40, '0') AS o
          FROM generate_series(1, %(wallets)s) n
        UNION ALL VALUES ('fee', 'offpeak'), ('deposit_clearing', 'offpeak')) x;
CREATE TEMP TABLE made AS
SELECT n, gen_random_uuid() AS id, sha256(int8send(n)) AS digest,
       '0x' || lpad(to_hex(n %% %(wallets)s + 1), 40, '0') AS payer,
       timestamptz '2025-11-01 00:00Z' + n * interval '30 days' / %(records)s AS at
  FROM generate_series(0, %(records)s - 1) n;
INSERT INTO offpeak.request_authorization
SELECT digest, {ACCOUNT}, payer, digest, digest, digest, '{{}}', digest, '{{}}', digest FROM made;
INSERT INTO offpeak.job(
  id, account_id, authorization_digest, kind, state, release, region, asset, input_tokens,
  max_output_tokens, input_rate, output_rate, per_request, ask_ceiling, model_revision, run_seconds,
  accepted_at, deadline_at, ended_at, content_until)
SELECT id, {ACCOUNT}, digest, 'interactive', 'completed', 'smollm2-135m-instruct', 'local',
       %(asset)s, 400, 200, 60000000, 180000000, 1000, 1, digest, 20, at, at, at, at FROM made;
INSERT INTO offpeak.usage_record(
  record_id, account_id, payer_seq, previous_record, supplier_statement, input_tokens,
  cached_input_tokens, output_tokens, reasoning_tokens, held, charge, released, outcome,
  response_digest, salt, completed_at, include_by)
SELECT id, {ACCOUNT}, row_number() OVER mine, lag(id) OVER mine, digest, 400, 0, 100, 0, 61000,
       43000, 18000, 1, digest, digest, date_trunc('second', at), at
  FROM made WINDOW mine AS (PARTITION BY payer ORDER BY n);
INSERT INTO offpeak.transfer(ref, leg, debit, credit, amount, asset, created_at)
SELECT id, 1, {ACCOUNT}, offpeak._account_id('fee', 'offpeak', %(asset)s), 43000, %(asset)s, at
  FROM made
"""
LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.executable, [sys.executable, "-m", *sys.argv[1:]], os.environ)
_, status, used = os.wait4(child, 0)
sys.stderr.write(str(used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small parent: a process counts its parent's memory at the fork as its own peak."""


async def fill(url: str, records: int) -> None:
    """Make so many records, signed and sealed."""
    given = {"asset": ASSET, "wallets": WALLETS, "records": records}
    with psycopg.connect(url, autocommit=True) as owner:
        for statement in FILL.split(";"):
            owner.execute(statement.encode(), given)
    database = open_database(url, pool_size=4)
    signer = RecordService(database, RecordSigner(seed("record"), DOMAIN))
    while await signer.sign_unsigned(2_000):
        pass
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ANALYZE")
    await Sequencer(database, terms(), BATCH).run_once()
    await database.dispose()


def measured(*command: str, **environ: str) -> tuple[float, float, str]:
    """Run a program; return seconds, peak resident MB, and what it printed."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCHER, *command],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    return time.monotonic() - started, int(done.stderr.split()[-1]) / 1024, done.stdout


def main(records: int, formats: list[str]) -> None:
    """Fill, export, verify, print."""
    running = RunningCluster()
    url = running.cluster.create()
    started = time.monotonic()
    asyncio.run(fill(url, records))
    print(f"{records} records made and sealed in {time.monotonic() - started:.0f} s", flush=True)
    environ = {
        "OFFPEAK_DATABASE_URL": url,
        "OFFPEAK_SIGNING_KEY": seed("record").hex(),
        "OFFPEAK_CHECKPOINT_KEY": seed("log").hex(),
        "OFFPEAK_LOG_ORIGIN": ORIGIN,
        "OFFPEAK_CHAIN_ID": str(DOMAIN.chain_id),
        "OFFPEAK_RECEIPT_ANCHOR_ADDRESS": DOMAIN.verifying_contract,
    }
    with tempfile.TemporaryDirectory() as folder:
        trusted = Path(folder) / "policy.txt"
        trusted.write_text(policy())
        for kind in formats:
            target = Path(folder) / kind
            seconds, peak, printed = measured(
                "app.cli", "finance", "export", "--month", "2025-11", "--format", kind, "-o",
                str(target), "--json", **environ,
            )  # fmt: skip
            size = sum(int(each["bytes"]) for each in json.loads(printed)["files"])
            print(
                f"{kind:<10} {seconds:6.1f} s  {peak:5.0f} MB peak  {size / 1e6:.0f} MB", flush=True
            )
            seconds, peak, _ = measured(
                "ledger.verify", "export", str(target), "--policy", str(trusted)
            )
            print(f"{'verify':<10} {seconds:6.1f} s  {peak:5.0f} MB peak", flush=True)
    running.cluster.drop(url)
    running.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
