"""The check of a finance export: a folder that must prove itself, by keys that its reader chose.

Trust comes first, as for a receipt: keys, then the manifest's signature and place in the log, then
that the files are those of the manifest. Then the evidence is read once, batch by batch, and the
data rows with it. Memory stays flat: one row, one path of each tree, one number for each wallet.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from ledger.checkpoint import LogProof
from ledger.errors import LedgerError
from ledger.export_evidence import (
    DATA_FILES,
    EVIDENCE_FILE,
    KEYS_FILE,
    MANIFEST_FILE,
    MANIFEST_PROOF_FILE,
    MAX_LINE_BYTES,
    parse_key_line,
)
from ledger.export_row import caip10
from ledger.log_entry import EntryKind
from ledger.log_keys import MAX_KEYS, KeyTable
from ledger.manifest import ExportManifest
from ledger.note import MAX_NOTE_BYTES, Note
from ledger.receipt import KeyEntry
from ledger.verify import trust
from ledger.verify.documents import reason_of
from ledger.verify.errors import Refused
from ledger.verify.export_evidence import EvidenceCheck
from ledger.verify.export_log import ExportedLog
from ledger.verify.export_rows import RecordRows, check_transfers, has_rows
from ledger.verify.files import digest_of, in_folder, lines_of, names_in, read_limited
from ledger.verify.policy import Policy

_BESIDE = {MANIFEST_FILE, MANIFEST_PROOF_FILE, KEYS_FILE}
"""Files that the manifest cannot list: itself and what proves it."""
MAX_PROOF_BYTES = 64_000
"""A proof of 63 hashes and a checkpoint that 64 keys have signed are shorter."""


class ExportStep(StrEnum):
    """What is checked, in this order."""

    KEYS = "keys"
    MANIFEST = "manifest"
    LOG = "log"
    FILES = "files"
    RECORDS = "records"
    TRANSFERS = "transfers"
    SUMS = "sums"


@dataclass(frozen=True, slots=True)
class ExportFinding:
    """One step's end, in words."""

    step: ExportStep
    is_refused: bool
    detail: str


@dataclass(slots=True)
class ExportCase:
    """An export under check; each step leaves here what later ones need."""

    folder: str
    policy: Policy
    table: KeyTable | None = None
    note: bytes = b""
    manifest: ExportManifest = field(init=False)
    log: ExportedLog = field(init=False)
    evidence: EvidenceCheck = field(init=False)

    def path(self, name: str) -> str:
        """The path of one of its files."""
        return in_folder(self.folder, name)


def verify_export(folder: str, policy: Policy) -> Iterator[ExportFinding]:
    """What each step found, as it ends; the first that does not hold is the last.

    Raises:
        Unusable: a file cannot be read.
    """
    case = ExportCase(folder, policy)
    for step, check in _CHECKS.items():
        try:
            detail = check(case)
        except Refused as refused:
            yield ExportFinding(step, is_refused=True, detail=str(refused))
            return
        except LedgerError as error:
            yield ExportFinding(step, is_refused=True, detail=reason_of(error))
            return
        yield ExportFinding(step, is_refused=False, detail=detail)


def _keys(case: ExportCase) -> str:
    entries: list[KeyEntry] = []
    for line in lines_of(case.path(KEYS_FILE), MAX_LINE_BYTES):
        if len(entries) == MAX_KEYS:
            raise Refused(f"more than {MAX_KEYS} key entries")
        entries.append(parse_key_line(line))
    case.table = trust.follow_keys(entries, case.policy)
    case.log = ExportedLog(case.policy, case.table)
    for entry in entries:
        case.log.require(EntryKind.KEY_ROTATION, entry.entry, entry.log_proof)
    return f"{len(entries)} key entries, followed from a key of the policy"


def _manifest(case: ExportCase) -> str:
    case.note = read_limited(case.path(MANIFEST_FILE), MAX_NOTE_BYTES)
    manifest = case.manifest = ExportManifest.read(Note.parse(case.note))
    if manifest.origin != case.policy.origin:
        raise Refused(f"a manifest of {manifest.origin}, not of {case.policy.origin}")
    if manifest.format not in DATA_FILES:
        raise Refused(f"a format that is not known: {manifest.format[:40]!a}")
    return f"{manifest.records} records, {manifest.transfers} transfers as {manifest.format}"


def _log(case: ExportCase) -> str:
    data = read_limited(case.path(MANIFEST_PROOF_FILE), MAX_PROOF_BYTES)
    try:
        proof = LogProof.parse(data.decode())
    except UnicodeDecodeError:
        raise Refused("a proof that is not UTF-8") from None
    head = case.log.require(EntryKind.EXPORT_MANIFEST, case.note, proof)
    if proof.index < case.manifest.log_size:
        raise Refused("the manifest stands in the log before the batches that it names")
    named = case.policy.log_keys
    if case.table is not None:
        named = tuple(filter(None, [case.table.checkpoint_key(proof.index + 1)]))
    counting = [key for key in named if case.policy.counts_at(str(key), proof.index + 1)]
    if not Note.parse(case.note).signers(counting):
        raise Refused("the manifest is not signed by the key of its place in the log")
    return f"the signed manifest is entry {proof.index} of the log of {head.size}"


def _files(case: ExportCase) -> str:
    listed = {each.name: each for each in case.manifest.files}
    expected = {EVIDENCE_FILE, *DATA_FILES[case.manifest.format]}
    if set(listed) != expected:
        raise Refused(f"the manifest lists other files than a {case.manifest.format} export has")
    found = names_in(case.folder)
    for name in sorted(found ^ (expected | _BESIDE)):
        what = "is not of the export" if name in found else "is missing"
        raise Refused(f"{name[:100]!a} {what}")
    for name in sorted(expected):
        if digest_of(case.path(name), size=listed[name].size) != listed[name].digest:
            raise Refused(f"{name} is not what the manifest lists")
    return f"{len(expected)} files are what the manifest lists"


def _records(case: ExportCase) -> str:
    rows = RecordRows.open(case.folder, case.manifest, case.policy.records.chain_id)
    check = case.evidence = EvidenceCheck(case.log, case.manifest)
    for place, record in check.records(lines_of(case.path(EVIDENCE_FILE), MAX_LINE_BYTES)):
        rows.require(record, place)
    rows.require_end()
    said = "every row as signed" if has_rows(case.manifest) else "rows of this format not read"
    return f"{check.count} records in {check.batches} batches of the log; {said}"


def _transfers(case: ExportCase) -> str:
    if not has_rows(case.manifest):
        return "not read: by the file's digest only"
    chain_id = case.policy.records.chain_id
    net = {caip10(chain_id, asset): amount for asset, amount in case.evidence.net.items()}
    return check_transfers(case.folder, case.manifest, net)


def _sums(case: ExportCase) -> str:
    manifest, found = case.manifest, case.evidence
    if found.count != manifest.records:
        raise Refused(f"{found.count} records, but {manifest.records} in the manifest")
    if found.sums != manifest.sums:
        raise Refused("the records add up to other sums than the manifest's")
    if (found.first, found.last) != (manifest.first_batch, manifest.last_batch):
        raise Refused("other batches than the manifest names")
    if found.log_size != manifest.log_size:
        raise Refused(f"a log size of {found.log_size}, but {manifest.log_size} in the manifest")
    return "counts and sums are the manifest's"


_CHECKS: dict[ExportStep, Callable[[ExportCase], str]] = {
    ExportStep.KEYS: _keys,
    ExportStep.MANIFEST: _manifest,
    ExportStep.LOG: _log,
    ExportStep.FILES: _files,
    ExportStep.RECORDS: _records,
    ExportStep.TRANSFERS: _transfers,
    ExportStep.SUMS: _sums,
}
