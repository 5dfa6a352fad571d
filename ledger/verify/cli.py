"""`offpeak-verify`: reads the files that its arguments name, checks, prints, exits."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from ledger.encoding import canonical_json
from ledger.errors import LedgerError
from ledger.merkle import TreeHead
from ledger.receipt import MAX_RECEIPT_BYTES
from ledger.strict_json import bytes_of, parse_object
from ledger.verify import remembered
from ledger.verify.errors import Unusable
from ledger.verify.exits import MEANINGS, Exit, worst
from ledger.verify.files import TooLarge, is_folder, read_limited, receipts_in
from ledger.verify.heads import ConsistencyProof, KnownHeads
from ledger.verify.history import History
from ledger.verify.onchain import Chain
from ledger.verify.policy import MAX_POLICY_BYTES, Policy, parse_policy
from ledger.verify.report import JsonReport, Report, TextReport, ends_badly
from ledger.verify.steps import Asked, verify_receipt
from ledger.verify.trust import Trusted
from ledger.verify.verdict import Finding, Result, Step, Verdict

PROGRAM: Final = "offpeak-verify"
MAX_PROOF_BYTES: Final = 20_000
INTERRUPTED: Final = 130
EPILOG: Final = (
    "exit codes:\n"
    + "\n".join(f"  {int(code):>2}  {meaning}" for code, meaning in MEANINGS.items())
    + "\n\n`offpeak-verify export DIR` checks a finance export.\n"
    "example: offpeak-verify receipt.json --policy policy.txt --prev last.checkpoint"
)


class _Parser(argparse.ArgumentParser):
    """Exits with 64 where argparse would with 2, which means something else here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(Exit.USAGE, f"{PROGRAM}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the command line names and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _ready_streams()
    try:
        return _export(given[1:]) if given[:1] == ["export"] else _receipts(given)
    except Unusable as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return Exit.USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _ready_streams() -> None:
    """Let any text be written in any locale, and to nowhere where a stream was closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 -- until exit
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _export(arguments: list[str]) -> int:
    """Check a finance export."""
    from ledger.verify.export import verify_export  # noqa: PLC0415  # a receipt does without
    from ledger.verify.export_report import show  # noqa: PLC0415

    options = export_parser().parse_args(arguments)
    if not is_folder(options.folder):
        raise Unusable(f"{options.folder}: no folder")
    policy = parse_policy(read_limited(options.policy, MAX_POLICY_BYTES))
    output = _Output()
    ended = show(verify_export(options.folder, policy), output.write, as_json=options.json)
    output.flush()
    return ended


def export_parser() -> argparse.ArgumentParser:
    """The command line of `offpeak-verify export DIR`."""
    made = _Parser(
        prog=f"{PROGRAM} export",
        description="Check a finance export offline, by keys that you chose.",
        allow_abbrev=False,
    )
    made.add_argument("folder", metavar="DIR", help="the folder that the export made")
    made.add_argument("--policy", required=True, metavar="FILE", help="whom you trust")
    made.add_argument("--json", action="store_true", help="one JSON document instead of text")
    return made


def parser() -> argparse.ArgumentParser:
    """The command line of `offpeak-verify RECEIPT`."""
    made = _Parser(
        prog=PROGRAM,
        description="Check receipts by keys that you chose; offline, unless --rpc names a node.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("paths", nargs="+", metavar="RECEIPT", help="a receipt, or a folder of them (*.json)")
    add("--policy", required=True, metavar="FILE", help="whom you trust: docs/spec/policy.md")
    add("--prev", metavar="FILE", help="remember the checkpoint here and demand consistency")
    add(
        "--consistency",
        metavar="FILE",
        action="append",
        default=[],
        help="a proof between two log sizes, as the gateway gives it; may be repeated",
    )
    add("--request", metavar="FILE", help="the request that you sent, to compare")
    add("--salt", metavar="HEX", help="its salt, where the receipt does not hold it")
    add("--require", choices=("logged", "anchored"), default="logged", help="default: %(default)s")
    add("--fresh", action="store_true", help="the receipt was fetched just now: say if overdue")
    add(
        "--rpc",
        metavar="URL",
        action="append",
        default=[],
        help="a node of the chain to check the anchor with; each one given must confirm",
    )
    add("--json", action="store_true", help="one JSON document instead of text")
    return made


class _Output:
    """Standard output. When nobody reads any more, the check still ends with its exit code."""

    def __init__(self) -> None:
        self._is_open = True

    def write(self, text: str) -> None:
        """Write, while somebody reads; raises Unusable when it cannot be written."""
        if self._is_open:
            self._try(lambda: sys.stdout.write(text))

    def flush(self) -> None:
        """Send what was written; raises Unusable when it cannot be."""
        if self._is_open:
            self._try(sys.stdout.flush)

    def _try(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            self._is_open = False
            nowhere = os.open(os.devnull, os.O_WRONLY)  # for the interpreter's own flush at exit
            os.dup2(nowhere, sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                raise Unusable(f"standard output: {error.strerror}") from None


def _receipts(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    policy = parse_policy(read_limited(options.policy, MAX_POLICY_BYTES))
    was = None if options.prev is None else remembered.load(options.prev, policy.origin)
    proofs = [
        ConsistencyProof.parse(read_limited(path, MAX_PROOF_BYTES)) for path in options.consistency
    ]
    paths, is_whole = _expanded(options.paths)
    asked = _asked(options, policy, single=len(paths) == 1)
    output = _Output()  # nothing is written before all that was named could be read
    report: Report = (
        JsonReport(output.write)
        if options.json
        else TextReport(output.write, steps=len(paths) == 1)
    )
    run = _Run(policy, KnownHeads(was, proofs), asked, report)
    ended = run.check(paths, is_whole=is_whole)
    notes, failed = run.notes(), None
    if options.prev is not None and ended not in {Exit.INVALID, Exit.USAGE}:
        try:
            run.remember(options.prev, was)
        except Unusable as error:
            failed, ended = error, Exit.USAGE
    report.end(run.history if len(paths) > 1 or is_whole else None, notes, ended)
    output.flush()
    if failed is not None:
        raise failed
    return ended


class _Run:
    """The receipts of one command, in order."""

    def __init__(self, policy: Policy, known: KnownHeads, asked: Asked, report: Report) -> None:
        self.history = History()
        self._policy = policy
        self._known = known
        self._asked = asked
        self._report = report
        self._latest: Trusted | None = None

    def check(self, paths: list[str], *, is_whole: bool) -> Exit:
        """Check each and all together; return the exit code."""
        exits = {self._one(path) for path in paths}
        was_all_read = Exit.USAGE not in exits  # else what could not be checked looks like a gap
        if ends_badly(self.history, is_whole=is_whole and was_all_read):
            exits.add(Exit.INVALID)
        return worst(exits)

    def _one(self, path: str) -> Exit:
        try:
            data = read_limited(path, MAX_RECEIPT_BYTES)
        except TooLarge as error:
            finding = Finding(Step.FORM, Result.REFUSED, str(error))
            self._report.receipt(path, Verdict(Exit.INVALID, (finding,), None, None))
            return Exit.INVALID
        except Unusable as error:
            self._report.unusable(path, str(error))
            return Exit.USAGE
        verdict = verify_receipt(data, self._policy, self._known, self._asked)
        if verdict.facts is not None:
            self.history.add(verdict.facts)
            seen = verdict.trusted
            if seen is not None and (
                self._latest is None or seen.head.size > self._latest.head.size
            ):
                self._latest = seen
        self._report.receipt(path, verdict)
        return verdict.exit

    def remember(self, path: str, was: TreeHead | None) -> None:
        """Keep the largest checkpoint that was verified."""
        if self._latest is not None:
            now = self._latest
            remembered.store(path, self._policy.origin, was=was, now=now.head, note=now.note)

    def notes(self) -> tuple[str, ...]:
        """What the reader should know of the whole run."""
        unlinked = self._known.unlinked
        if not unlinked:
            return ()
        sizes = ", ".join(map(str, unlinked[:10]))
        return (f"checkpoints of sizes {sizes} were not compared with each other",)


def _expanded(paths: list[str]) -> tuple[list[str], bool]:
    """All files, and whether a folder is among what was named."""
    found: list[str] = []
    is_whole = False
    for path in paths:
        if is_folder(path):
            is_whole = True
            found += receipts_in(path)
        else:
            found.append(path)
    return found, is_whole


def _asked(options: argparse.Namespace, policy: Policy, *, single: bool) -> Asked:
    request, salt = None, None
    if options.request is not None:
        if not single:
            raise Unusable("--request is compared with one receipt")
        request, salt = _request(options.request)
    elif options.salt is not None:
        raise Unusable("--salt goes with --request")
    if options.salt is not None:
        salt = _salt(options.salt)
    return Asked(
        request=request,
        request_salt=salt,
        fetched_at=int(time.time()) if options.fresh else None,  # noqa: TID251 -- an edge
        needs_anchor=options.require == "anchored",
        chain=_chain(options.rpc, policy) if options.rpc else None,
    )


def _chain(urls: Sequence[str], policy: Policy) -> Chain:
    from ledger.verify.rpc import Nodes  # noqa: PLC0415  # who stays offline loads no network code

    return Nodes(urls, chain_id=policy.records.chain_id)


def _request(path: str) -> tuple[bytes, bytes | None]:
    """The request's RFC 8785 form, and the salt where the file is the body that asked a quote."""
    try:
        given = parse_object(read_limited(path, MAX_RECEIPT_BYTES), what="request", fractions=True)
        salt = None
        body = given.get("request")
        if isinstance(body, dict) and "salt" in given:
            salt, given = _salt(given["salt"]), body
        return canonical_json(given), salt
    except LedgerError as error:
        raise Unusable(f"{path}: not a request: {error}") from None


def _salt(text: object) -> bytes:
    try:
        return bytes_of(text, "salt")
    except LedgerError as error:
        raise Unusable(str(error)) from None
