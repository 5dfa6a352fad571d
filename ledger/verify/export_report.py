"""What is printed of an export's check."""

import json
from collections.abc import Callable, Iterable
from typing import Final

from ledger.verify.exits import Exit
from ledger.verify.export import ExportFinding
from ledger.verify.limits import NOT_PROVED
from ledger.verify.report import printable

FORMAT: Final = "offpeak/export-verification@v1"
OF_EXPORTS: Final = (
    "that every record of the interval is in it: leaves given by their hash alone may be of it too",
    "model, region and booking time of a row: no record signs them",
    "that batches and manifest are of one log, unless witnesses cosign: no proof links their sizes",
    "each transfer: they are compared with the records by their sums, else the manifest signs them",
    "rows of formats other than jsonl and csv: their files are compared by digest only",
)
"""What a verified export does not prove, besides what no receipt proves."""


def show(
    findings: Iterable[ExportFinding], write: Callable[[str], object], *, as_json: bool
) -> Exit:
    """Print each step as it ends, then the limits; return the exit code."""
    seen = []
    for each in findings:
        seen.append(each)
        if not as_json:
            result = "refused" if each.is_refused else "ok"
            write(f"  {result:<9} {each.step:<12} {printable(each.detail)}\n")
    ended = Exit.INVALID if seen[-1].is_refused else Exit.VERIFIED
    limits = [*OF_EXPORTS, *NOT_PROVED]
    if as_json:
        document = {
            "format": FORMAT,
            "steps": [
                {
                    "step": each.step,
                    "result": "refused" if each.is_refused else "ok",
                    "detail": each.detail,
                }
                for each in seen
            ],
            "does_not_prove": limits,
            "verified": ended is Exit.VERIFIED,
            "exit": int(ended),
        }
        write(json.dumps(document) + "\n")
        return ended
    write("\nWhatever was verified, it does not prove:\n")
    for limit in limits:
        write(f"  - {limit}\n")
    write(f"\n{'VERIFIED' if ended is Exit.VERIFIED else 'INVALID'} (exit {int(ended)})\n")
    return ended
