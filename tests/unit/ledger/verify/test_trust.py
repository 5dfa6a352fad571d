"""Which keys count: rotations, pins, retired keys, witnesses, pending receipts."""

from dataclasses import replace

import pytest

from ledger.checkpoint import Checkpoint
from ledger.encoding import checksum_address
from ledger.log_entry import EntryKind
from ledger.note import NoteSigner
from ledger.receipt import KeyEntry
from ledger.usage import Outcome
from ledger.verify.exits import Exit
from ledger.verify.steps import Asked
from ledger.verify.verdict import Result, Step, Verdict
from tests.receipt_world import NOW, Edits, World, secret, small_world
from tests.unit.ledger.verify.checking import (
    good,
    policy,
    refusal,
    subject,
    verdict_on,
    world,
)


def result_of(verdict: Verdict, step: Step) -> Result:
    return next(each.result for each in verdict.findings if each.step is step)


def test_receipts_from_before_and_after_a_rotation_verify_with_one_policy() -> None:
    for job in world().jobs:
        verdict = verdict_on(world().receipt(job))
        if job in world().waiting:
            assert verdict.exit is Exit.PENDING
        else:
            assert refusal(verdict) is None


def test_every_outcome_is_among_the_receipts_that_verify() -> None:
    assert {job.record.outcome for job in world().jobs} == set(Outcome)


def test_a_receipt_fetched_before_a_rotation_verifies_afterwards() -> None:
    job = world().batches[0].jobs[0]
    for size in range(2, 6):
        assert refusal(verdict_on(world().receipt(job, size))) is None


def test_three_rotations_are_followed_and_old_receipts_still_hold() -> None:
    log = World()
    jobs = []
    for _ in range(4):
        jobs.append(log.job())
        log.seal()
        log.rotate()
    for job in jobs:
        assert refusal(verdict_on(log.receipt(job))) is None


def test_a_policy_may_start_from_a_later_key() -> None:
    text = (
        world().policy().replace(str(world().signer(0).verifier), str(world().signer(1).verifier))
    )
    for job in (subject(), world().batches[0].jobs[0]):
        assert refusal(verdict_on(world().receipt(job), policy(text))) is None


def test_key_entries_before_the_first_trusted_one_are_not_needed() -> None:
    receipt = good()
    assert refusal(verdict_on(replace(receipt, keys=receipt.keys[1:]))) is None


def test_a_policy_of_another_key_refuses() -> None:
    stranger = NoteSigner(world().origin, secret("stranger")).verifier
    text = world().policy().replace(str(world().signer(0).verifier), str(stranger))
    assert refusal(verdict_on(good(), policy(text)), "of the policy") == Step.KEYS


def test_a_policy_of_another_log_refuses() -> None:
    elsewhere = NoteSigner("elsewhere", secret("one checkpoint 0")).verifier
    text = world().policy().replace(str(world().signer(0).verifier), str(elsewhere))
    assert refusal(verdict_on(good(), policy(text))) == Step.KEYS


@pytest.mark.parametrize(
    ("key", "place", "step"),
    [
        ("first checkpoint", 0, Step.KEYS),
        ("first checkpoint", 3, Step.KEYS),
        ("first checkpoint", 4, None),
        ("second checkpoint", 4, Step.CHECKPOINT),
        ("second checkpoint", 5, Step.CHECKPOINT),
        ("second checkpoint", 6, None),
        ("second record", 4, Step.RECORD_SIGNATURE),
        ("second record", 5, None),
        ("first record", 0, None),
    ],
)
def test_a_retired_key_counts_for_nothing_from_there_on(
    key: str, place: int, step: Step | None
) -> None:
    generation = 0 if key.startswith("first") else 1
    is_checkpoint = key.endswith("checkpoint")
    name = (
        str(world().signer(generation).verifier)
        if is_checkpoint
        else world().record_key(generation).address
    )
    verdict = verdict_on(good(), policy(world().policy(f"retired {name} {place}")))
    if step is None:
        assert refusal(verdict) is None
    else:
        assert refusal(verdict) == step


def test_a_stolen_old_key_can_make_a_log_but_not_for_a_policy_that_retires_it() -> None:
    thief = World()  # has generation 0's keys and shows a log without the rotation
    for _ in range(4):
        thief.job()
        thief.seal()
    receipt = thief.receipt(thief.jobs[-1])
    assert refusal(verdict_on(receipt)) is None
    retired = world().policy(f"retired {world().signer(0).verifier} 4")
    assert refusal(verdict_on(receipt, policy(retired))) == Step.CHECKPOINT


def test_an_old_record_key_counts_for_its_grace_and_no_longer() -> None:
    log = World()
    log.job()
    log.seal()
    late = log.job()  # signed by the old key, sealed after the rotation
    log.rotate(grace=1)
    log.seal()
    assert refusal(verdict_on(log.receipt(late))) is None
    signed_by_old = Edits(recorded_by="one record 0", quoted_by="one record 0")
    later = log.job("bob", edits=signed_by_old)
    log.seal()
    assert refusal(verdict_on(log.receipt(later)), "no record key") == Step.RECORD_SIGNATURE


def test_a_quote_of_the_key_before_still_counts_after_a_rotation() -> None:
    log = World()
    log.job()
    log.seal()
    log.rotate()
    job = log.job("bob", edits=Edits(quoted_by="one record 0"))
    log.seal()
    assert refusal(verdict_on(log.receipt(job))) is None


def test_pinned_record_keys_are_the_only_ones() -> None:
    first, second = (world().record_key(number).address for number in (0, 1))
    pinned = policy(world().policy(f"record-key {checksum_address(second)}"))
    assert refusal(verdict_on(good(), pinned)) is None
    wrong = policy(world().policy(f"record-key {first}"))
    assert refusal(verdict_on(good(), wrong), "pin") == Step.RECORD_SIGNATURE


def test_without_key_entries_the_policy_must_name_both_keys() -> None:
    bare = replace(good(), keys=())
    later = (
        world().policy().replace(str(world().signer(0).verifier), str(world().signer(1).verifier))
    )
    assert refusal(verdict_on(bare, policy(later)), "pins no record key") == Step.RECORD_SIGNATURE
    pinned = later + f"record-key {world().record_key(1).address}\n"
    assert refusal(verdict_on(bare, policy(pinned))) is None


def test_an_entry_of_another_kind_is_no_rotation() -> None:
    log = World()
    log.entries[0] = (EntryKind.EXPORT_MANIFEST, log.entries[0][1])
    job = log.job()
    log.seal()
    keys = (KeyEntry(log.entries[0][1], log.log_proof(0)),)
    assert refusal(verdict_on(replace(log.receipt(job), keys=keys))) == Step.KEY_ENTRIES


def witness(number: int) -> NoteSigner:
    return NoteSigner(f"witness.example/{number}", secret(f"witness {number}"))


GROUP = (
    *(f"witness W{number} {witness(number).verifier}" for number in range(3)),
    "group most 2 W0 W1 W2",
)


@pytest.mark.parametrize(
    ("quorum", "signing", "fine"),
    [
        ("most", (0, 2), True),
        ("most", (0, 1, 2), True),
        ("most", (1,), False),
        ("most", (), False),
        ("W1", (1,), True),
        ("W1", (0, 2), False),
        ("none", (), True),
    ],
)
def test_a_quorum_of_witnesses_must_have_cosigned(
    quorum: str, signing: tuple[int, ...], *, fine: bool
) -> None:
    log = small_world()
    note = log.checkpoint(witnesses=[witness(number) for number in signing])
    receipt = log.receipt(log.batches[2].jobs[0], checkpoint=note)
    verdict = verdict_on(receipt, policy(log.policy(*GROUP, f"quorum {quorum}")))
    if fine:
        assert refusal(verdict) is None
    else:
        assert refusal(verdict, "too few") == Step.WITNESSES


def test_a_witness_alone_is_no_log() -> None:
    log = small_world()
    head = Checkpoint(log.origin, log.head())
    receipt = log.receipt(log.batches[2].jobs[0], checkpoint=head.sign([witness(1)]))
    verdict = verdict_on(receipt, policy(log.policy(*GROUP, "quorum W1")))
    assert refusal(verdict) == Step.CHECKPOINT


def test_a_false_cosignature_of_a_known_witness_is_refused() -> None:
    log = small_world()
    liar = NoteSigner(witness(1).verifier.name, secret("liar"))
    note = log.checkpoint(witnesses=[witness(1)]).decode()
    encoded = note.strip().rsplit(" ", 1)[1]
    other = liar.line("other").strip().rsplit(" ", 1)[1]
    receipt = log.receipt(
        log.batches[2].jobs[0],
        checkpoint=note.replace(encoded, encoded[:8] + other[8:]).encode(),
    )
    verdict = verdict_on(receipt, policy(log.policy(*GROUP, "quorum none")))
    assert refusal(verdict) == Step.CHECKPOINT


def test_a_pending_receipt_says_so_and_is_overdue_only_when_fresh_and_late() -> None:
    job = world().waiting[0]
    due = job.record.include_by
    for asked, expected in (
        (Asked(), Exit.PENDING),
        (Asked(fetched_at=due), Exit.PENDING),
        (Asked(fetched_at=due + 1), Exit.OVERDUE),
        (Asked(needs_anchor=True), Exit.PENDING),
    ):
        assert verdict_on(world().receipt(job), asked=asked).exit is expected


def test_a_pending_receipt_without_keys_is_no_evidence_of_a_breach() -> None:
    bare = replace(world().receipt(world().waiting[0]), keys=())
    late = Asked(fetched_at=NOW + 10**6)
    verdict = verdict_on(bare, asked=late)
    assert verdict.exit is Exit.PENDING
    assert result_of(verdict, Step.RECORD_SIGNATURE) is Result.WAITING
    pinned = policy(world().policy(f"record-key {world().record_key().address}"))
    assert verdict_on(bare, pinned, late).exit is Exit.OVERDUE


def test_a_pending_record_by_an_unknown_key_is_refused() -> None:
    log = World()
    job = log.job(edits=Edits(recorded_by="stranger"))
    assert refusal(verdict_on(log.receipt(job))) == Step.RECORD_SIGNATURE


def test_an_anchor_that_is_asked_for_is_not_there_yet() -> None:
    verdict = verdict_on(good(), asked=Asked(needs_anchor=True))
    assert verdict.exit is Exit.NOT_ANCHORED
    assert result_of(verdict, Step.ANCHOR) is Result.WAITING
