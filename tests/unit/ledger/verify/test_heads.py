"""The log may only grow: remembered heads, proofs between sizes, forks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.merkle import TreeHead
from ledger.verify.errors import Refused, Unusable
from ledger.verify.exits import Exit
from ledger.verify.heads import ConsistencyProof, KnownHeads
from ledger.verify.verdict import Result, Step
from tests.receipt_world import World
from tests.unit.ledger.verify.checking import refusal, verdict_on, world


def long_log() -> World:
    log = World()
    for _ in range(11):
        log.job()
        log.seal()
    return log


LOG = long_log()


def proof(old: int, new: int) -> ConsistencyProof:
    return ConsistencyProof(old, new, LOG.consistency(old, new))


@given(st.integers(1, 12), st.integers(1, 12))
def test_any_two_sizes_are_linked_by_their_proof_and_by_no_other(old: int, new: int) -> None:
    small, large = sorted((old, new))
    known = KnownHeads(LOG.head(old), [proof(small, large)])
    assert known.see(LOG.head(new))
    if small != large:
        hashes = (*proof(small, large).hashes, bytes(32))
        with pytest.raises(Refused, match="does not hold"):
            KnownHeads(LOG.head(old), [ConsistencyProof(small, large, hashes)]).see(LOG.head(new))


def test_a_missing_proof_is_named_by_its_path() -> None:
    for remembered, seen in ((3, 7), (7, 3)):
        with pytest.raises(Unusable, match=r"/v1/log/consistency\?from=3&to=7"):
            KnownHeads(LOG.head(remembered), [proof(2, 7)]).see(LOG.head(seen))


def test_proofs_may_lead_over_heads_that_were_seen() -> None:
    known = KnownHeads(LOG.head(3), [proof(5, 9), proof(3, 5)])
    known.see(LOG.head(5))
    assert "continues" in known.see(LOG.head(9))


def test_two_roots_of_one_size_are_a_fork() -> None:
    known = KnownHeads(LOG.head(3), [])
    with pytest.raises(Refused, match="forked"):
        known.see(TreeHead(3, bytes(32)))


def test_without_anything_remembered_sizes_are_only_noted() -> None:
    one, two = KnownHeads(None, []), KnownHeads(None, [])
    assert [one.see(LOG.head(3)), *(two.see(LOG.head(size)) for size in (3, 5))] == ["", "", ""]
    assert one.unlinked == ()
    assert two.unlinked == (3, 5)
    with pytest.raises(Refused, match="forked"):
        two.see(TreeHead(5, bytes(32)))


def test_a_log_that_took_an_entry_back_is_refused() -> None:
    rewritten = World()
    rewritten.job("bob")
    rewritten.seal()
    job = rewritten.job()
    rewritten.seal()
    receipt = rewritten.receipt(job)
    assert refusal(verdict_on(receipt)) is None
    forked = verdict_on(receipt, known=KnownHeads(LOG.head(3), []))
    assert refusal(forked, "evidence") == Step.CONSISTENCY
    shorter = verdict_on(
        receipt, known=KnownHeads(LOG.head(2), [ConsistencyProof(2, 3, LOG.consistency(2, 3))])
    )
    assert refusal(shorter, "does not hold") == Step.CONSISTENCY


def test_a_missing_proof_leaves_the_receipt_unchecked_and_not_invalid() -> None:
    receipt = world().receipt(world().jobs[0])
    verdict = verdict_on(receipt, known=KnownHeads(world().head(3), []))
    assert verdict.findings[-1].result is Result.UNUSABLE
    assert verdict.exit is Exit.USAGE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"from": 3, "to": "7", "proof": []}',
        '{"from": "3", "to": "7", "proof": ["0x00"]}',
        '{"from": "3", "to": "7", "proof": [], "more": 1}',
        '{"from": "3", "from": "4", "to": "7", "proof": []}',
        json.dumps({"from": "3", "to": "7", "proof": ["0x" + "00" * 32] * 70}),
    ],
)
def test_a_proof_of_another_form_is_unusable(text: str) -> None:
    with pytest.raises(Unusable):
        ConsistencyProof.parse(text.encode())


def test_the_endpoint_s_answer_is_read() -> None:
    hashes = ["0x" + each.hex() for each in LOG.consistency(3, 7)]
    text = json.dumps({"from": "3", "to": "7", "proof": hashes})
    assert ConsistencyProof.parse(text.encode()) == proof(3, 7)
