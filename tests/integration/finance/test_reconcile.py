"""Reconciliation finds whatever two books say differently, and what has waited for too long."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.cli.exits import Exit
from app.finance.interval import Interval
from app.finance.reconcile import Reconciler
from app.finance.reconciliation import Reconciliation
from app.finance.rule import rules
from tests.integration.books import Books, Order, wallet
from tests.integration.cli.running import invoked
from tests.integration.receipts.conftest import Archive

BUYER, OTHER = wallet(1), wallet(2)
REFUND = "ref IN (SELECT record_id FROM offpeak.correction)"
KINDS = "SELECT id FROM offpeak.account WHERE kind ="
FIRST = "(SELECT record_id FROM offpeak.usage_record WHERE outcome = 1 ORDER BY payer_seq LIMIT 1)"
BACK = "now() - interval '40 days'"
BREAKS = (
    ("charges", f"UPDATE offpeak.transfer SET amount = amount + 1 WHERE ref = {FIRST}"),
    ("charges", f"DELETE FROM offpeak.transfer WHERE ref = {FIRST}"),
    ("charges", f"DELETE FROM offpeak.usage_record WHERE record_id = {FIRST}"),
    ("charges", f"UPDATE offpeak.transfer SET debit = credit, credit = debit WHERE ref = {FIRST}"),
    (
        "charges",
        f"UPDATE offpeak.transfer SET debit = ({KINDS} 'treasury') WHERE ref = {FIRST}",
    ),
    ("charges", f"UPDATE offpeak.transfer SET created_at = {BACK} WHERE ref = {FIRST}"),
    ("charges", f"UPDATE offpeak.usage_record SET completed_at = {BACK} WHERE outcome = 1"),
    ("refunds", f"UPDATE offpeak.transfer SET created_at = {BACK} WHERE {REFUND}"),
    (
        "accruals",
        f"UPDATE offpeak.transfer SET created_at = {BACK} WHERE credit IN ({KINDS} 'supplier')",
    ),
    ("refunds", f"UPDATE offpeak.transfer SET amount = amount + 1 WHERE {REFUND}"),
    ("refunds", "DELETE FROM offpeak.correction"),
    ("refunds", f"DELETE FROM offpeak.transfer WHERE {REFUND}"),
    ("accruals", "UPDATE offpeak.cost_entry SET amount = amount + 1 WHERE amount > 0"),
    ("accruals", "DELETE FROM offpeak.cost_entry"),
    ("accruals", f"DELETE FROM offpeak.transfer WHERE credit IN ({KINDS} 'supplier')"),
    ("sealed", 'UPDATE offpeak.receipt_batch SET "end" = "end" + 1 WHERE number = 0'),
    ("sealed", "DELETE FROM offpeak.receipt_batch WHERE number = 0"),
    ("headers", 'UPDATE offpeak.receipt_batch SET "end" = "end" + 1 WHERE number = 0'),
    ("headers", f"UPDATE offpeak.usage_record SET charge = 6, held = 9 WHERE record_id = {FIRST}"),
    ("headers", "UPDATE offpeak.receipt_batch SET header = 'no header'"),
    ("headers", "UPDATE offpeak.log_entry SET entry = 'x' WHERE batch_number = 1"),
    (
        "headers",
        "UPDATE offpeak.usage_record SET leaf_index = NULL, leaf_hash = NULL WHERE leaf_index = 0",
    ),
    ("log", "DELETE FROM offpeak.log_entry WHERE batch_number = 0"),
    ("log", "DELETE FROM offpeak.log_entry WHERE index = 0"),
    ("log", "DELETE FROM offpeak.receipt_batch WHERE number = 1"),
    ("log", "DELETE FROM offpeak.log_checkpoint WHERE size = 2"),
    ("log", "DELETE FROM offpeak.log_entry WHERE index = 2"),
)


@pytest.fixture
async def reconciled(archive: Archive) -> Archive:
    """Two batches of records, completed and failed, one of them corrected, all logged."""
    archive.books.fund(OTHER, 1_000)
    dear = archive.books.seller(1, ask=10_000_000)
    order = Order(payer=OTHER, amount=100, per_request=50, candidates=(dear.deployment_id,))
    archive.books.settle(archive.books.accept([order]), 50)
    ids = await archive.seal(BUYER, 2)
    archive.end_jobs(OTHER, 1, charge=0)
    assert archive.books.correct(ids[0], 3) == "ok"
    await archive.seal(BUYER)
    return archive


async def reconcile(archive: Archive, late_after: timedelta = timedelta(hours=1)) -> Reconciliation:
    return await Reconciler(archive.database, late_after=late_after).run()


def unmatched(found: Reconciliation) -> set[str]:
    return {match.name for match in found.matches if match.count}


def waiting(found: Reconciliation) -> dict[str, tuple[int, int]]:
    return {queue.name: (queue.count, queue.late) for queue in found.queues if queue.count}


async def test_books_in_use_match(reconciled: Archive) -> None:
    found = await reconcile(reconciled)
    assert (unmatched(found), waiting(found), found.unmatched) == (set(), {}, 0)
    [position] = found.positions
    assert position.difference == 0
    assert (position.treasury, position.made_up) == (0, 1_040)
    assert position.fees + position.suppliers == 50 + 3 * 7 - 4
    assert position.suppliers > 0


async def test_an_interval_is_compared_by_itself(reconciled: Archive) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for days in range(-1, 2):
        start = midnight + timedelta(days=days)
        part = Interval(start, start + timedelta(days=1))
        found = await Reconciler(reconciled.database).run(part)
        assert (found.unmatched, found.interval) == (0, part)


def test_every_comparison_has_something_that_breaks_it() -> None:
    assert {name for name, _ in BREAKS} == {rule.name for rule in rules("matches")} | {"headers"}


@pytest.mark.parametrize(("name", "planted"), BREAKS)
async def test_what_does_not_match_is_found(
    reconciled: Archive, fresh_database_url: str, name: str, planted: str
) -> None:
    with Books(fresh_database_url, role="none") as owner:
        owner.one(
            "SELECT offpeak.open_account('treasury', 'offpeak', min(asset)) FROM offpeak.account"
        )
        owner.connection.execute(planted.encode())

    found = await reconcile(reconciled)

    assert name in unmatched(found)
    assert all(match.items for match in found.matches if match.count)
    assert found.unmatched >= 1


async def test_what_waits_is_listed_with_its_age_and_late_when_it_is_too_old(
    reconciled: Archive, fresh_database_url: str
) -> None:
    archive, books = reconciled, reconciled.books
    archive.end_jobs(BUYER, 2)
    assert waiting(await reconcile(archive)) == {"unsigned-records": (2, 0)}
    await archive.sign()
    found = await reconcile(archive)
    assert (waiting(found), found.unmatched) == ({"unsealed-records": (2, 0)}, 0)
    await archive.sequencer().seal_once()
    assert waiting(await reconcile(archive)) == {"unlogged-batches": (1, 0)}
    await archive.sequencer().log_headers()
    assert waiting(await reconcile(archive)) == {"entries-without-checkpoint": (1, 0)}
    found = await reconcile(archive, timedelta(0))
    assert (waiting(found), found.unmatched) == ({"entries-without-checkpoint": (1, 1)}, 1)
    await archive.sequencer().sign_checkpoints()

    order = Order(payer=OTHER, amount=10, candidates=(archive.seller.deployment_id,))
    books.accept([order])
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(
            "UPDATE offpeak.hold SET expires_at = now() - interval '2 h' WHERE id = %s",
            (order.job_id,),
        )
    assert waiting(await reconcile(archive)) == {"expired-holds": (1, 1)}


async def test_a_record_past_its_include_by_time_is_late_however_patient_one_is(
    reconciled: Archive, fresh_database_url: str
) -> None:
    reconciled.end_jobs(BUYER, 2)
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(
            "UPDATE offpeak.usage_record SET include_by = now() - interval '1 s'"
            " WHERE signature IS NULL"
        )
    found = await reconcile(reconciled, timedelta(days=300))
    assert (waiting(found), found.unmatched) == ({"unsigned-records": (2, 2)}, 2)


async def test_money_that_is_nobodys_is_a_difference(
    reconciled: Archive, fresh_database_url: str
) -> None:
    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute("UPDATE offpeak.wallet_balance SET available = available + 1")
    found = await reconcile(reconciled)
    assert [position.difference for position in found.positions] == [2]
    assert found.unmatched == 1


def test_the_command_lists_it_and_its_exit_code_tells(
    reconciled: Archive, fresh_database_url: str, tmp_path: Path
) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        done = invoked(
            tmp_path, "finance", "reconcile", *arguments, OFFPEAK_DATABASE_URL=fresh_database_url
        )
        return done.exit_code, done.stdout, done.stderr

    code, shown, _ = run()
    assert code == Exit.OK
    assert "no chain connected" in shown
    assert "adds up" in shown
    code, shown, _ = run("--from", "2020-01", "--to", "2020-02", "--json")
    assert (code, json.loads(shown)["unmatched"]) == (Exit.OK, 0)

    with Books(fresh_database_url, role="none") as owner:
        owner.connection.execute(f"DELETE FROM offpeak.transfer WHERE ref = {FIRST}".encode())
    code, shown, told = run()
    assert code == Exit.CHECK_FAILED
    assert "1 UNMATCHED" in shown
    assert "DIFFERS" in shown
    assert "(unmatched)" in told
    code, shown, _ = run("--json")
    assert code == Exit.CHECK_FAILED
    [item] = next(m for m in json.loads(shown)["matches"] if m["name"] == "charges")["first"]
    assert item["age_seconds"] >= 0
