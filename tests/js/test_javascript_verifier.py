"""A second verifier, in JavaScript and from the pages alone, ends every receipt as ours does.

Same exit code, and refused at the same step. What it is given: the receipts of the vectors, each
member of them changed or left out, documents changed inside the signed texts, and what a dishonest
gateway could sign.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.encoding import canonical_json
from ledger.usage import Outcome
from ledger.verify.heads import KnownHeads
from ledger.verify.policy import parse_policy
from ledger.verify.steps import Asked, verify_receipt
from tests.js.receipt_cases import (
    GOOD,
    POLICY,
    STEPS,
    VECTORS,
    Case,
    files,
    policies,
    swaps,
    worlds,
)
from tests.js.signature_cases import notes, signatures
from tests.receipt_world import World

pytestmark = [
    pytest.mark.node,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH"),
]

SCRIPT = Path(__file__).with_name("verify.mjs")
Ending = tuple[int, str | None]
"""The exit code, and the step that was refused."""


def ours(case: Case) -> Ending:
    verdict = verify_receipt(case[1], parse_policy(case[2].encode()), KnownHeads(None, ()), Asked())
    return int(verdict.exit), None if verdict.refused is None else str(verdict.refused.step)


def theirs(cases: list[Case], folder: Path) -> list[Ending]:
    lines = []
    for number, (_, receipt, policy) in enumerate(cases):
        paths = [folder / f"{number}.receipt", folder / f"{number}.policy"]
        paths[0].write_bytes(receipt)
        paths[1].write_text(policy, encoding="utf-8")
        lines.append(json.dumps({"receipt": str(paths[0]), "policy": str(paths[1])}))
    run = subprocess.run(
        ["node", str(SCRIPT)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return [(answer["exit"], answer["step"]) for answer in answers]


def agreed(cases: list[Case], folder: Path) -> dict[str, Ending]:
    """How each case ended, for both."""
    found = {case[0]: ours(case) for case in cases}
    assert len(found) == len(cases)
    names = [case[0] for case in cases]
    assert dict(zip(names, theirs(cases, folder), strict=True)) == found
    return found


def refused(endings: dict[str, Ending]) -> list[str]:
    return [name for name, (code, _) in endings.items() if code == 1]


def test_both_verify_every_receipt_of_the_vectors(tmp_path: Path) -> None:
    cases = [(name, text.encode(), POLICY) for name, text in VECTORS["receipts"].items()]
    witnessed = VECTORS["receipts"]["witnessed"].encode()
    cases.append(("with a quorum", witnessed, VECTORS["witnessed_policy"]))
    endings = agreed(cases, tmp_path)
    assert {name for name, ending in endings.items() if ending == (2, None)} == {"pending"}
    assert {name for name, ending in endings.items() if ending == (5, None)} == {"contract_wallet"}
    assert {code for code, _ in endings.values()} == {0, 2, 5}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything inside a document."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in members:
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*path, name))


def edited(path: tuple[Any, ...], change: Callable[[Any, Any], None], text: str = GOOD) -> bytes:
    document = json.loads(text)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    change(inner, path[-1])
    return json.dumps(document, ensure_ascii=False).encode()


def flip(inner: Any, name: Any) -> None:
    """Change one character in the middle, a hex digit to a hex digit."""
    text = inner[name]
    middle = len(text) // 2
    other = "1" if text[middle] != "1" else "2"
    inner[name] = text[:middle] + other + text[middle + 1 :]


def put(value: object) -> Callable[[Any, Any], None]:
    def change(inner: Any, name: Any) -> None:
        inner[name] = value

    return change


def leave_out(inner: Any, name: Any) -> None:
    del inner[name]


def test_both_refuse_every_member_that_is_changed(tmp_path: Path) -> None:
    document = json.loads(GOOD)
    cases: list[Case] = []
    for path in leaves(document):
        inner = document
        for step in path:
            inner = inner[step]
        name = "/".join(map(str, path))
        if isinstance(inner, str) and inner:
            cases.append((f"flipped {name}", edited(path, flip), POLICY))
        cases.append((f"left out {name}", edited(path, leave_out), POLICY))
        cases.append((f"number {name}", edited(path, put(7)), POLICY))
        if inner is not None:
            cases.append((f"null {name}", edited(path, put(None)), POLICY))
    endings = agreed(cases, tmp_path)
    assert len(endings) > 100
    assert set(endings) - set(refused(endings)) == {
        "null opening",
        "null opening/answer",
        "left out keys/0",  # the trusted key has signed the rotation after it too
    }


def test_both_read_what_a_receipt_says_of_the_chain_the_same_way(tmp_path: Path) -> None:
    cases: list[Case] = []
    for receipt, member in (("anchored", "anchor"), ("contract_wallet", "acceptance")):
        text = VECTORS["receipts"][receipt]
        for path in leaves({member: json.loads(text)[member]}):
            name = "/".join(map(str, path))
            cases.append((f"left out {name}", edited(path, leave_out, text), POLICY))
            cases.append((f"number {name}", edited(path, put(7), text), POLICY))
            cases.append((f"null {name}", edited(path, put(None), text), POLICY))
            if path[-1] not in {"anchor", "acceptance", "contract_check"}:
                cases.append((f"flipped {name}", edited(path, flip, text), POLICY))
    anchored = VECTORS["receipts"]["anchored"].encode()
    contract = f"contract {json.loads(anchored)['anchor']['contract']}\n"
    cases.append(("the contract named apart", anchored, POLICY + contract))
    cases.append(("another contract named", anchored, POLICY + f"contract 0x{'11' * 20}\n"))
    endings = agreed(cases, tmp_path)
    assert set(endings) - set(refused(endings)) == {
        "null anchor",
        *(f"flipped anchor/{name}" for name in ("tx_hash", "block_number", "block_hash")),
        "flipped anchor/log_index",
        "the contract named apart",
        "flipped acceptance/signature",  # only its contract could tell
        *(f"flipped acceptance/contract_check/{name}" for name in ("block_number", "block_hash")),
    }  # fmt: skip


def inside(member: str, name: str, text: str = "message", **changes: object) -> Case:
    """A document inside a signed text, changed and written again in RFC 8785 form."""
    value = json.loads(json.loads(GOOD)[member][text])
    value.update(changes)
    new = canonical_json(value).decode()
    return name, edited((member, text), put(new)), POLICY


def test_both_refuse_every_field_of_the_signed_texts(tmp_path: Path) -> None:
    document = json.loads(GOOD)
    cases = []
    for member, text in (
        ("record", "message"),
        ("quote", "message"),
        ("acceptance", "message"),
        ("supplier", "statement"),
        ("batch", "header"),
    ):
        for field, value in json.loads(document[member][text]).items():
            if isinstance(value, str):
                other = value[:-1] + ("1" if value[-1] != "1" else "2")
                cases.append(inside(member, f"{member}.{field}", text, **{field: other}))
            cases.append(inside(member, f"{member}.{field} number", text, **{field: 7}))
        more = {"more": "1"}
        cases.append(inside(member, f"{member} with more", text, **more))
    assert refused(agreed(cases, tmp_path)) == [case[0] for case in cases]


def test_both_refuse_what_is_no_receipt(tmp_path: Path) -> None:
    cases = list(files())
    endings = agreed(cases, tmp_path)
    assert set(endings.values()) == {(1, "form")}


def test_escapes_and_white_space_of_the_file_are_free(tmp_path: Path) -> None:
    document = json.loads(GOOD)
    shuffled = dict(reversed(document.items()))
    cases = [
        ("ASCII", json.dumps(document, ensure_ascii=True).encode(), POLICY),
        ("dense", json.dumps(document, separators=(",", ":")).encode(), POLICY),
        ("shuffled", json.dumps(shuffled, indent="\t").encode(), POLICY),
    ]
    assert set(agreed(cases, tmp_path).values()) == {(0, None)}


def test_both_read_a_policy_the_same_way(tmp_path: Path) -> None:
    endings = agreed(list(policies()), tmp_path)
    assert [name for name in endings if name not in refused(endings)] == [
        "both keys", "the new key only", "the old key retired after the rotation",
        "the new key retired later", "the record key pinned", "the record key retired later",
        "a met quorum",
    ]  # fmt: skip


def test_both_refuse_what_others_could_sign(tmp_path: Path) -> None:
    assert agreed(list(worlds()), tmp_path) == {name: (1, step) for name, step in STEPS.items()}


def test_both_take_one_form_of_a_signature(tmp_path: Path) -> None:
    endings = agreed(list(signatures()), tmp_path)
    assert refused(endings) == list(endings)


def test_both_read_a_note_the_same_way(tmp_path: Path) -> None:
    endings = agreed(list(notes()), tmp_path)
    assert [name for name in endings if name not in refused(endings)] == [
        "an unknown line before",
        "the line twice",
        "a false line after",
        "64 lines",
        "a name beyond ASCII",
    ]


def test_both_refuse_parts_of_two_receipts(tmp_path: Path) -> None:
    endings = agreed(list(swaps()), tmp_path)
    accepted = {name: ending for name, ending in endings.items() if ending[0] != 1}
    assert accepted == {
        "without the first table": (0, None),  # the trusted key has signed the rotation too
        "pending with keys": (2, None),
        "pending without keys": (2, None),
        "a line more": (0, None),
    }


@pytest.mark.parametrize("outcome", Outcome)
def test_both_verify_every_outcome(outcome: Outcome, tmp_path: Path) -> None:
    world = World()
    job = world.job("alice", outcome if outcome is not Outcome.CORRECTION else Outcome.COMPLETED)
    if outcome is Outcome.CORRECTION:
        job = world.correct(job, charge=10)
    world.seal()
    case = (str(outcome), world.receipt(job).encode(), world.policy())
    assert set(agreed([case], tmp_path).values()) == {(0, None)}
