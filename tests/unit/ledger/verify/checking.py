"""What the verifier's tests share: one good receipt, and the verdict on whatever is made of it."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from ledger.receipt import Receipt
from ledger.verify.exits import Exit
from ledger.verify.heads import KnownHeads
from ledger.verify.policy import Policy, parse_policy
from ledger.verify.steps import Asked, verify_receipt
from ledger.verify.verdict import Result, Step, Verdict
from tests.receipt_world import Job, World, small_world

Document = dict[str, Any]


@cache
def world() -> World:
    """The world that is only read."""
    return small_world()


@cache
def other_world() -> World:
    """A world of other keys, under the same log's name."""
    return small_world("two")


def subject() -> Job:
    """A job of the batch after the rotation: proofs have hashes, there are two key entries."""
    return world().batches[2].jobs[2]


def good() -> Receipt:
    """The receipt that every mutation starts from."""
    return world().receipt(subject())


def document(receipt: Receipt | None = None) -> Document:
    """A receipt as JSON values."""
    found: Document = json.loads((good() if receipt is None else receipt).encode())
    return found


def compact(value: Document) -> bytes:
    """JSON values as a file without any space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def policy(text: str | None = None) -> Policy:
    """The policy of a text, that of the shared world by default."""
    return parse_policy((world().policy() if text is None else text).encode())


def verdict_on(
    data: bytes | Document | Receipt,
    trusting: Policy | None = None,
    asked: Asked | None = None,
    known: KnownHeads | None = None,
) -> Verdict:
    """The verdict on a receipt in any of its forms."""
    if isinstance(data, Receipt):
        data = data.encode()
    elif isinstance(data, dict):
        data = compact(data)
    return verify_receipt(
        data,
        policy() if trusting is None else trusting,
        KnownHeads(None, ()) if known is None else known,
        Asked() if asked is None else asked,
    )


def refusal(verdict: Verdict, word: str = "") -> Step | str | None:
    """The step that refused with exit code 1 for a reason that has this word; None: verified.

    Anything else is told in words, so that a comparison fails and says what came instead.
    """
    if verdict.exit is Exit.VERIFIED and verdict.refused is None:
        return None
    last = verdict.findings[-1]
    is_refused = last.result is Result.REFUSED and verdict.exit is Exit.INVALID
    if is_refused and verdict.facts is None and word in last.detail:
        return last.step
    return f"{verdict.exit.name}, {last.step} {last.result}: {last.detail}"


def edit_text(value: Document, path: tuple[str, ...], change: Callable[[str], str]) -> None:
    """Change the text at a path of a document in place."""
    for name in path[:-1]:
        value = value[name]
    value[path[-1]] = change(value[path[-1]])
