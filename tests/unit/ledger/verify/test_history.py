"""A folder of receipts shows its wallets' gaps, forks and corrections, and adds them up."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from ledger.encoding import Address
from ledger.hashing import sha256
from ledger.log_entry import BatchHeader
from ledger.merkle import BatchIndex
from ledger.money import Nano
from ledger.receipt import BatchPart
from ledger.usage import Outcome, UsageRecord
from ledger.verify.history import History
from ledger.verify.problems import Kind
from ledger.verify.verdict import Facts
from tests.receipt_world import TOKEN, Edits, Job, World
from tests.unit.ledger.verify.checking import policy, verdict_on, world


def facts(log: World, jobs: Iterable[Job]) -> list[Facts]:
    found = [verdict_on(log.receipt(job)).facts for job in jobs]
    return [each for each in found if each is not None]


def history(given: Iterable[Facts]) -> History:
    found = History()
    for each in given:
        found.add(each)
    return found


WHOLE = facts(world(), world().jobs)


def test_a_whole_history_has_no_problem_in_any_order() -> None:
    assert len(WHOLE) == len(world().jobs)
    assert history(WHOLE).problems() == ()
    assert history(reversed(WHOLE)).problems() == ()


def test_totals_count_each_record_once_and_take_refunds_off() -> None:
    records = [job.record for job in world().jobs]
    (total,) = history([*WHOLE, *WHOLE]).totals()
    charged = sum(each.charge_nano for each in records if each.outcome is not Outcome.CORRECTION)
    refunded = sum(each.released_nano for each in records if each.outcome is Outcome.CORRECTION)
    assert refunded == 1_000
    assert (total.asset, total.records) == (TOKEN, len(records))
    assert (total.charged, total.refunded, total.paid) == (charged, refunded, charged - refunded)


def test_totals_are_kept_apart_by_token() -> None:
    other = Address("0x" + "11" * 20)
    found = history([WHOLE[0], replace(WHOLE[1], asset=other)]).totals()
    assert [each.asset for each in found] == sorted((TOKEN, other))


@pytest.mark.parametrize("missing", range(1, 8))
def test_a_record_that_is_missing_is_a_gap(missing: int) -> None:
    alice = [each for each in WHOLE if each.payer == world().wallet("alice").address]
    left = [each for each in alice if each.payer_seq != missing + 1]
    (problem,) = history(left).problems()
    assert problem.kind is Kind.GAP
    assert f"{missing + 1} missing" in problem.detail


def test_a_history_may_begin_later_and_end_earlier() -> None:
    assert history(WHOLE[3:9]).problems() == ()


def test_two_signed_records_of_one_number_are_a_fork() -> None:
    forked = World()
    forked.job()
    forked.job(edits=Edits(record=lambda record: replace(
        record, payer_seq=1, prev_payer_record=bytes(32)
    )))  # fmt: skip
    forked.seal()
    (problem,) = history(facts(forked, forked.jobs)).problems()
    assert problem.kind is Kind.FORK


def test_a_record_that_follows_another_one_is_a_fork() -> None:
    forked = World()
    forked.job()
    forked.job(edits=Edits(record=lambda record: replace(record, prev_payer_record=sha256(b"x"))))
    forked.seal()
    (problem,) = history(facts(forked, forked.jobs)).problems()
    assert problem.kind is Kind.FORK
    assert "does not follow" in problem.detail


def test_two_signed_records_of_one_id_are_a_fork() -> None:
    twice = replace(WHOLE[0], digest=bytes(32))
    problems = history([WHOLE[0], twice]).problems()
    assert [each.kind for each in problems] == [Kind.FORK]


def corrected(*charges: int, change: Edits | None = None) -> History:
    log = World()
    original = log.job()
    for charge in charges:
        log.correct(original, charge=charge, edits=change or Edits())
    log.seal()
    return history(facts(log, log.jobs))


def test_a_correction_takes_over_what_it_corrects() -> None:
    assert corrected(7_000).problems() == ()

    def other_quote(record: UsageRecord) -> UsageRecord:
        return replace(record, held_nano=Nano(9_000), released_nano=Nano(2_000))

    (problem,) = corrected(7_000, change=Edits(record=other_quote)).problems()
    assert problem.kind is Kind.CORRECTION


def test_a_record_is_corrected_once() -> None:
    (problem,) = corrected(7_000, 6_000).problems()
    assert "again" in problem.detail


def test_a_correction_of_a_record_that_is_not_here_is_taken_as_it_is() -> None:
    assert history(each for each in WHOLE if each.payer_seq == 3).problems() == ()


def forked() -> tuple[World, World]:
    """Two logs of the same keys that part after the first batch, as one gateway could keep them."""
    logs = World("fork"), World("fork")
    for log in logs:
        log.job("alice")
        log.job("bob")
        log.seal()
    return logs


def test_two_entries_at_one_index_of_the_log_are_a_fork_whatever_the_sizes() -> None:
    shown, hidden = forked()
    for log, wallet in ((shown, "alice"), (hidden, "bob")):
        log.job(wallet)
        log.seal()
    hidden.job("carol")
    hidden.seal()
    trusting = policy(shown.policy())
    found = history(
        verdict.facts
        for log, job in ((shown, shown.jobs[-1]), (hidden, hidden.jobs[2]))
        if (verdict := verdict_on(log.receipt(job), trusting)).facts is not None
    )
    details = [each.detail for each in found.problems() if each.kind is Kind.LOG]
    assert any("two entries of the log at index 2" in each for each in details), details


def test_a_record_that_was_sealed_twice_is_told() -> None:
    log = World("twice")
    job = log.job("alice")
    log.seal()
    log.waiting.append(job)
    again = log.seal()
    first, second = (
        log.receipt(job),
        replace(
            log.receipt(job),
            batch=BatchPart(again.header, BatchIndex(0), again.tree.proof(0)),
            log_proof=log.log_proof(again.index),
        ),
    )
    trusting = policy(log.policy())
    verdicts = [verdict_on(each, trusting) for each in (first, second)]
    found = history(each.facts for each in verdicts if each.facts is not None)
    assert [each.kind for each in found.problems()] == [Kind.LOG]


@pytest.mark.parametrize(
    "edit",
    [
        lambda header: replace(header, previous_header=sha256(b"another")),
        lambda header: replace(header, start=header.start + 1, end=header.end + 1),
        lambda header: replace(header, number=0),
    ],
    ids=["link", "place", "number"],
)
def test_a_batch_that_does_not_follow_on_the_one_before_is_told(
    edit: Callable[[BatchHeader], BatchHeader],
) -> None:
    log = World("links")
    for _ in range(2):
        log.job("alice")
        log.seal(edit if log.batches else None)
    trusting = policy(log.policy())
    found = history(
        verdict.facts
        for job in log.jobs
        if (verdict := verdict_on(log.receipt(job), trusting)).facts is not None
    )
    assert [each.kind for each in found.problems()] == [Kind.LOG]
