"""What the chain adds to a check: anchors and contract wallets, and never a no from silence."""

from dataclasses import replace

import pytest

from ledger.errors import BadReceipt
from ledger.onchain import ContractCheck, ContractMethod
from ledger.receipt import Receipt
from ledger.verify.exits import Exit
from ledger.verify.onchain import CONFIRMED, View, confirmation_call, unwrapped
from ledger.verify.steps import Asked
from ledger.verify.verdict import Result, Step, Verdict
from tests.receipt_world import TREASURY
from tests.unit.ledger.verify.checking import good, policy, refusal, subject, verdict_on, world
from tests.unit.ledger.verify.nodes import FINALIZED, NO, Stated, anchoring, chain_of

SEEN = ContractCheck(ContractMethod.DEPLOYED, 1_900, b"\x0a" * 32)


def anchored() -> Receipt:
    return replace(good(), anchor=world().anchor())


def asking(*nodes: View, needs_anchor: bool = True) -> Asked:
    return Asked(needs_anchor=needs_anchor, chain=chain_of(*nodes))


def result(verdict: Verdict, step: Step) -> tuple[Exit, Result]:
    return verdict.exit, next(each.result for each in verdict.findings if each.step is step)


def test_an_anchor_is_claimed_as_long_as_no_node_is_asked() -> None:
    verdict = verdict_on(anchored())
    assert result(verdict, Step.ANCHOR) == (Exit.VERIFIED, Result.UNCHECKED)
    assert "claimed" in verdict.findings[-1].detail
    demanded = verdict_on(anchored(), asked=Asked(needs_anchor=True))
    assert demanded.exit is Exit.NOT_ANCHORED
    assert result(verdict_on(good()), Step.ANCHOR) == (Exit.VERIFIED, Result.ABSENT)


@pytest.mark.parametrize("receipt", [anchored(), good()], ids=["claimed", "not claimed"])
def test_an_anchor_at_a_finalized_block_is_enough(receipt: Receipt) -> None:
    verdict = verdict_on(receipt, asked=asking(anchoring(world().head())))
    assert result(verdict, Step.ANCHOR) == (Exit.VERIFIED, Result.OK)
    assert f"finalized block {FINALIZED.number}" in verdict.findings[-1].detail


def test_another_root_on_chain_is_evidence_of_a_fork() -> None:
    liar = Stated(roots={world().head().size: b"\1" * 32})
    for receipt in (anchored(), good()):
        verdict = verdict_on(receipt, asked=asking(liar, needs_anchor=False))
        assert refusal(verdict, "forked") == Step.ANCHOR


@pytest.mark.parametrize(
    "nodes",
    [
        (Stated(),),
        (Stated(roots={2: b"\1" * 32}),),
        (Stated(roots=anchoring(world().head()).roots, contracts=frozenset()),),
        (anchoring(world().head()), Stated()),
        (anchoring(world().head()), Stated(roots={world().head().size: b"\1" * 32})),
        (Stated(roots={world().head().size: b""}),),
    ],
    ids=["nothing", "another size", "no code", "one has it", "they disagree", "no root"],
)
def test_what_nodes_do_not_confirm_is_neither_a_yes_nor_a_no(nodes: tuple[View, ...]) -> None:
    verdict = verdict_on(anchored(), asked=asking(*nodes))
    assert result(verdict, Step.ANCHOR) == (Exit.NOT_ANCHORED, Result.UNCHECKED)
    assert verdict_on(anchored(), asked=asking(*nodes, needs_anchor=False)).exit is Exit.VERIFIED


def test_the_contract_is_the_policys_and_never_the_receipts() -> None:
    elsewhere = replace(anchored(), anchor=replace(world().anchor(), contract=TREASURY))
    assert refusal(verdict_on(elsewhere), "not in") == Step.ANCHOR
    named = policy(world().policy(f"contract {TREASURY}"))
    chain = Stated(roots=anchoring(world().head()).roots, contracts=frozenset({TREASURY}))
    verdict = verdict_on(elsewhere, named, asking(chain))
    assert result(verdict, Step.ANCHOR) == (Exit.VERIFIED, Result.OK)
    assert refusal(verdict_on(anchored(), named, asking(chain))) == Step.ANCHOR


def test_an_anchor_is_of_the_receipts_own_checkpoint() -> None:
    for other in (world().anchor(4), replace(world().anchor(), root=b"\1" * 32)):
        changed = replace(anchored(), anchor=other)
        verdict = verdict_on(changed, asked=asking(anchoring(world().head())))
        assert refusal(verdict, "not of the receipt's checkpoint") == Step.ANCHOR


def test_a_pending_receipt_has_no_anchor_to_check() -> None:
    pending = world().receipt(world().waiting[0])
    verdict = verdict_on(pending, asked=asking(anchoring(world().head())))
    assert result(verdict, Step.ANCHOR) == (Exit.PENDING, Result.WAITING)
    with pytest.raises(BadReceipt):
        Receipt.parse(replace(pending, anchor=world().anchor()).encode())


# Contract wallets


def by_contract(signature: bytes = b"\7" * 200) -> Receipt:
    changed = replace(good().acceptance, signature=signature, contract_check=SEEN)
    return replace(good(), acceptance=changed)


def wallet_chain(now: bytes | None, then: bytes | None, *, kept: bool = True) -> Stated:
    answers = {FINALIZED.hash: now, SEEN.block_hash: then}
    return Stated(
        confirms={at: answer for at, answer in answers.items() if answer is not None},
        hashes={SEEN.block_number: SEEN.block_hash if kept else b"\x0b" * 32},
        contracts=frozenset({subject().record.payer}),
    )


def test_a_contract_wallets_signature_is_not_checkable_offline_and_no_pass() -> None:
    verdict = verdict_on(by_contract())
    assert result(verdict, Step.ACCEPTANCE_SIGNATURE) == (Exit.UNCHECKED, Result.UNCHECKED)
    assert verdict.facts is not None  # its place in the wallet's history still counts


def test_without_a_contract_only_the_payers_key_counts() -> None:
    longer = replace(by_contract().acceptance, contract_check=None)
    assert refusal(verdict_on(replace(good(), acceptance=longer))) == Step.FORM
    another = replace(longer, signature=world().wallet("bob").sign(bytes(32)))
    refused = verdict_on(replace(good(), acceptance=another))
    assert refusal(refused) == Step.ACCEPTANCE_SIGNATURE


@pytest.mark.parametrize(
    ("now", "then", "ended"),
    [
        (CONFIRMED, None, (Exit.VERIFIED, Result.OK)),
        (CONFIRMED, NO, (Exit.VERIFIED, Result.OK)),
        (NO, CONFIRMED, (Exit.VERIFIED, Result.OK)),
        (None, CONFIRMED, (Exit.VERIFIED, Result.OK)),
        (NO, NO, (Exit.INVALID, Result.REFUSED)),
        (None, NO, (Exit.INVALID, Result.REFUSED)),
        (NO, None, (Exit.UNCHECKED, Result.UNCHECKED)),
        (NO, b"\x16\x26\xba\x7e", (Exit.UNCHECKED, Result.UNCHECKED)),
    ],
)
def test_its_contract_is_asked_now_and_then(
    now: bytes | None, then: bytes | None, ended: tuple[Exit, Result]
) -> None:
    asked = asking(wallet_chain(now, then), needs_anchor=False)
    assert result(verdict_on(by_contract(), asked=asked), Step.ACCEPTANCE_SIGNATURE) == ended


def test_a_block_that_did_not_stay_says_nothing_of_then() -> None:
    asked = asking(wallet_chain(NO, NO, kept=False), needs_anchor=False)
    ended = result(verdict_on(by_contract(), asked=asked), Step.ACCEPTANCE_SIGNATURE)
    assert ended == (Exit.UNCHECKED, Result.UNCHECKED)


def test_a_wallet_that_is_not_there_or_two_nodes_that_differ_leave_it_open() -> None:
    missing = replace(wallet_chain(CONFIRMED, CONFIRMED), contracts=frozenset())
    yes, no = wallet_chain(CONFIRMED, CONFIRMED), wallet_chain(NO, NO)
    for nodes in ((missing,), (yes, no), (yes, missing)):
        verdict = verdict_on(by_contract(), asked=asking(*nodes, needs_anchor=False))
        assert result(verdict, Step.ACCEPTANCE_SIGNATURE) == (Exit.UNCHECKED, Result.UNCHECKED)


def word(number: int) -> bytes:
    return number.to_bytes(32)


def test_a_wrapped_signature_is_unwrapped_for_a_wallet_that_is_there() -> None:
    inner = b"\5" * 70
    padded = inner + bytes(26)
    body = word(1) + word(96) + word(128) + word(0) + word(len(inner)) + padded
    wrapped = body + bytes.fromhex("6492" * 16)
    assert unwrapped(wrapped) == inner
    assert unwrapped(inner) == inner
    long = body[:128] + word(97) + wrapped[160:]
    for broken in (long, body[:64] + word(2**255) + wrapped[96:], wrapped[-32:], wrapped[-64:]):
        assert unwrapped(broken) == broken
    asked = asking(chain := wallet_chain(CONFIRMED, None), needs_anchor=False)
    assert verdict_on(by_contract(wrapped), asked=asked).exit is Exit.VERIFIED
    acceptance = subject().acceptance.digest(policy().authorizations)
    assert chain.asked[0] == confirmation_call(acceptance, inner)


def test_a_history_of_a_contract_wallet_has_no_gap() -> None:
    verdicts = [verdict_on(by_contract()), verdict_on(good())]
    assert {each.facts.payer_seq for each in verdicts if each.facts} == {subject().record.payer_seq}
