"""What is printed: plain text, or one JSON document for machines. Both always say the limits."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from ledger.encoding import checksum_address
from ledger.money import Nano, format_amount
from ledger.usage import Outcome
from ledger.verify.documents import uuid_text
from ledger.verify.exits import Exit
from ledger.verify.history import History
from ledger.verify.limits import NOT_PROVED
from ledger.verify.problems import Kind
from ledger.verify.verdict import Facts, Result, Verdict

FORMAT: Final = "offpeak/verification@v1"

Write = Callable[[str], object]

_WORDS: Final = {
    Exit.VERIFIED: "VERIFIED",
    Exit.INVALID: "INVALID",
    Exit.PENDING: "PENDING",
    Exit.NOT_ANCHORED: "NOT ANCHORED",
    Exit.OVERDUE: "OVERDUE",
    Exit.UNCHECKED: "NOT ALL CHECKED",
    Exit.USAGE: "NOT CHECKED",
}


class Report(Protocol):
    """Takes receipts one by one, then the end; nothing of a receipt is kept."""

    def receipt(self, path: str, verdict: Verdict) -> None:
        """Show one receipt."""

    def unusable(self, path: str, reason: str) -> None:
        """Show that a file could not be read."""

    def end(self, history: History | None, notes: tuple[str, ...], ended: Exit) -> None:
        """Show what several receipts add up to, what is not proved, and the exit code."""


class TextReport:
    """For people: each step on a line when there is one receipt, each receipt when more."""

    def __init__(self, write: Write, *, steps: bool) -> None:
        """Take where to write, and whether to show every step."""
        self._write = write
        self._steps = steps

    def receipt(self, path: str, verdict: Verdict) -> None:
        """Show one receipt."""
        if self._steps:
            self._line(path)
            for each in verdict.findings:
                self._line(f"  {each.result:<9} {each.step:<20} {each.detail}")
        shown = "" if verdict.facts is None else f": {_in_words(verdict.facts)}"
        refused = verdict.refused
        if refused is not None:
            shown = f": {refused.step}: {refused.detail}"
        name = "" if self._steps else f"{path}  "
        self._line(f"{name}{_WORDS[verdict.exit]}{shown}")

    def unusable(self, path: str, reason: str) -> None:
        """Show that a file could not be read."""
        name = "" if self._steps else f"{path}  "
        self._line(f"{name}{_WORDS[Exit.USAGE]}: {reason}")

    def end(self, history: History | None, notes: tuple[str, ...], ended: Exit) -> None:
        """Show the wallets' sequences and totals, then the limits."""
        if history is not None:
            self._history(history)
        for note in notes:
            self._line(f"note: {note}")
        self._line("")
        self._line("Whatever was verified, it does not prove:")
        for each in NOT_PROVED:
            self._line(f"  - {each}")
        self._line("")
        self._line(f"{_WORDS[ended]} (exit {int(ended)})")

    def _history(self, history: History) -> None:
        self._line("")
        for payer, (first, last) in history.sequences.items():
            self._line(f"wallet {checksum_address(payer)}: records {first} to {last}")
        for total in history.totals():
            self._line(
                f"token {checksum_address(total.asset)}: {total.records} records,"
                f" charged {_tokens(total.charged)}, given back {_tokens(total.refunded)},"
                f" paid {_tokens(total.paid)}"
            )
        for problem in history.problems():
            self._line(f"{problem.kind.upper()}: {problem.detail}")

    def _line(self, text: str) -> None:
        self._write(printable(text) + "\n")


class JsonReport:
    """For machines: one document, written as it comes."""

    def __init__(self, write: Write) -> None:
        """Take where to write."""
        self._write = write
        self._separator = f'{{"format":"{FORMAT}","receipts":['

    def receipt(self, path: str, verdict: Verdict) -> None:
        """Show one receipt."""
        steps = [
            {"step": each.step, "result": each.result, "detail": each.detail}
            for each in verdict.findings
        ]
        facts = None if verdict.facts is None else _members(verdict.facts)
        self._item(
            {
                "file": path,
                "exit": int(verdict.exit),
                "verified": verdict.exit is Exit.VERIFIED,
                "refused": next(
                    (each.step for each in verdict.findings if each.result is Result.REFUSED), None
                ),
                "steps": steps,
                "record": facts,
            }
        )

    def unusable(self, path: str, reason: str) -> None:
        """Show that a file could not be read."""
        self._item({"file": path, "exit": int(Exit.USAGE), "verified": False, "error": reason})

    def end(self, history: History | None, notes: tuple[str, ...], ended: Exit) -> None:
        """Close the document."""
        if self._separator != ",":
            self._write(self._separator)
        rest = {
            "history": None if history is None else _history(history),
            "notes": list(notes),
            "does_not_prove": list(NOT_PROVED),
            "verified": ended is Exit.VERIFIED,
            "exit": int(ended),
        }
        self._write("]," + json.dumps(rest)[1:] + "\n")

    def _item(self, value: dict[str, object]) -> None:
        self._write(self._separator + json.dumps(value))
        self._separator = ","


def printable(text: str) -> str:
    """The text on one line, so that nothing in it moves the terminal's cursor or its colours."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _in_words(facts: Facts) -> str:
    corrects = facts.outcome is Outcome.CORRECTION
    due = "" if facts.sealed is not None else f", due in the log by {_time(facts.include_by)}"
    return (
        f"record {facts.payer_seq} of {checksum_address(facts.payer)},"
        f" {facts.outcome.name.lower()} {_time(facts.completed_at)},"
        f" {_tokens(facts.charge)} of {checksum_address(facts.asset)} charged,"
        f" {_tokens(facts.released)} {'given back' if corrects else 'released'}{due}"
    )


def _members(facts: Facts) -> dict[str, object]:
    return {
        "record_id": uuid_text(facts.record_id),
        "payer": checksum_address(facts.payer),
        "payer_seq": str(facts.payer_seq),
        "outcome": facts.outcome.name.lower(),
        "corrects_record": uuid_text(facts.corrects_record) if any(facts.corrects_record) else None,
        "asset": checksum_address(facts.asset),
        "held_nano": str(facts.held),
        "charge_nano": str(facts.charge),
        "released_nano": str(facts.released),
        "input_tokens": str(facts.input_tokens),
        "output_tokens": str(facts.output_tokens),
        "model": facts.model,
        "completed_at": str(facts.completed_at),
        "include_by": str(facts.include_by),
        "batch": None if facts.sealed is None else str(facts.sealed.number),
        "log_index": None if facts.sealed is None else str(facts.sealed.log_index),
        "log_size": None if facts.log_size is None else str(facts.log_size),
    }


def _history(history: History) -> dict[str, object]:
    return {
        "wallets": [
            {"payer": checksum_address(payer), "first": str(first), "last": str(last)}
            for payer, (first, last) in history.sequences.items()
        ],
        "outcomes": {each.name.lower(): count for each, count in sorted(history.outcomes.items())},
        "totals": [
            {
                "asset": checksum_address(each.asset),
                "records": str(each.records),
                "charged_nano": str(each.charged),
                "refunded_nano": str(each.refunded),
                "paid_nano": str(each.paid),
            }
            for each in history.totals()
        ],
        "problems": [
            {"kind": each.kind, "payer": checksum_address(each.payer), "detail": each.detail}
            for each in history.problems()
        ],
    }


def ends_badly(history: History, *, is_whole: bool) -> bool:
    """Whether what receipts say together is refused; a gap only where all should be there."""
    return any(is_whole or each.kind is not Kind.GAP for each in history.problems())


def _tokens(amount: int) -> str:
    return format_amount(Nano(amount))


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"unix second {seconds}"
