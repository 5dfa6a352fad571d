"""An export proves itself; one that was altered, even by whoever holds the log's key, does not."""

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.finance.export.writer import Format
from ledger.checkpoint import LogProof
from ledger.encoding import canonical_json
from ledger.export_evidence import RecordLine, parse_line
from ledger.log_entry import record_leaf_hash
from ledger.manifest import ExportManifest
from ledger.merkle import LogIndex
from ledger.money import Nano
from ledger.note import Note, NoteSigner
from ledger.usage import UsageRecord
from ledger.verify.cli import main
from tests.integration.books import wallet
from tests.integration.finance.exporting import Exporter, policy, relogged, rewritten, verify
from tests.integration.receipts.conftest import DOMAIN, Archive, seed

Lines = Callable[[list[str]], list[str]]


def flipped(line: str) -> str:
    """Return the text with its middle letter or digit changed."""
    middle = len(line) // 2
    sign = "1" if line[middle] != "1" else "2"
    return line[:middle] + sign + line[middle + 1 :]


ALTERED: dict[str, tuple[str, Lines, str]] = {
    "a row": ("records.csv", lambda lines: [*lines[:3], flipped(lines[3]), *lines[4:]], "files"),
    "a row less": ("records.csv", lambda lines: lines[:-1], "files"),
    "a transfer": ("transfers.csv", lambda lines: [flipped(lines[0]), *lines[1:]], "files"),
    "evidence": ("evidence.jsonl", lambda lines: lines[:-1], "files"),
    "the manifest": (
        "manifest.note",
        lambda lines: [*lines[:2], flipped(lines[2]), *lines[3:]],
        "log",
    ),
    "its signature": ("manifest.note", lambda lines: [*lines[:-1], flipped(lines[-1])], "log"),
    "its proof": (
        "manifest.tlog-proof",
        lambda lines: [*lines[:1], "index 1\n", *lines[2:]],
        "log",
    ),
    "the checkpoint": (
        "manifest.tlog-proof",
        lambda lines: [*lines[:-1], flipped(lines[-1])],
        "log",
    ),
    "no key": ("keys.jsonl", lambda _lines: [], "log"),
    "a key": ("keys.jsonl", lambda lines: [flipped(line) for line in lines], "keys"),
    "the key twice": ("keys.jsonl", lambda lines: lines * 2, "keys"),
}


@pytest.mark.parametrize("case", ALTERED)
async def test_a_folder_that_was_altered_is_refused(
    exporter: Exporter, tmp_path: Path, case: str
) -> None:
    name, edit, step = ALTERED[case]
    await exporter.export(tmp_path / "out", Format.CSV)
    rewritten(tmp_path / "out" / name, edit)
    code, said = verify(tmp_path / "out", policy())
    if case == "no key":  # then the policy's own key counts, but no record key is known
        assert (code, list(said)[-1]) == (1, "records")
    else:
        assert (code, list(said)[-1]) == (1, step), said


async def test_a_missing_or_a_further_file_is_refused(exporter: Exporter, tmp_path: Path) -> None:
    await exporter.export(tmp_path / "whole", Format.CSV)
    shutil.copytree(tmp_path / "whole", tmp_path / "less")
    (tmp_path / "less" / "transfers.csv").unlink()
    shutil.copytree(tmp_path / "whole", tmp_path / "more")
    (tmp_path / "more" / "notes.txt").write_text("hello")
    for name in ("less", "more"):
        code, said = verify(tmp_path / name, policy())
        assert (code, list(said)[-1]) == (1, "files")


# --- what whoever holds the log's key could sign and log ---------------------------------------


def jsonl_row(name: str, value: object) -> Lines:
    """Change a member of the third row."""

    def edit(lines: list[str]) -> list[str]:
        row = json.loads(lines[2])
        return [*lines[:2], canonical_json(row | {name: value}).decode() + "\n", *lines[3:]]

    return edit


def of_record(change: Callable[[UsageRecord, bytes], tuple[UsageRecord, bytes]]) -> Lines:
    """Change the first record of the evidence."""

    def edit(lines: list[str]) -> list[str]:
        [at, *_] = [n for n, line in enumerate(lines) if line.startswith('{"record"')]
        line = parse_line(lines[at].rstrip("\n").encode())
        assert isinstance(line, RecordLine)
        record = UsageRecord.parse(json.loads(line.record))
        changed, signature = change(record, line.signature)
        made = RecordLine(changed.canonical(), signature).encode().decode() + "\n"
        return [*lines[:at], made, *lines[at + 1 :]]

    return edit


def hidden(lines: list[str]) -> list[str]:
    """Give the first record by its leaf hash alone, as if it were not of the export."""
    [at, *_] = [n for n, line in enumerate(lines) if line.startswith('{"record"')]
    line = parse_line(lines[at].rstrip("\n").encode())
    assert isinstance(line, RecordLine)
    digest = UsageRecord.parse(json.loads(line.record)).digest(DOMAIN)
    leaf = record_leaf_hash(digest, line.signature).hex()
    return [*lines[:at], f'{{"leaf":"0x{leaf}"}}\n', *lines[at + 1 :]]


def cheaper(record: UsageRecord, signature: bytes) -> tuple[UsageRecord, bytes]:
    less = replace(
        record,
        charge_nano=Nano(record.charge_nano - 1),
        released_nano=Nano(record.released_nano + 1),
    )
    return less, signature


def unchanged(lines: list[str]) -> list[str]:
    return lines


def same(manifest: ExportManifest) -> ExportManifest:
    return manifest


def more_sums(manifest: ExportManifest) -> ExportManifest:
    [sums] = manifest.sums
    more = replace(sums, charge=Nano(sums.charge + 1), held=Nano(sums.held + 1))
    return replace(manifest, sums=(more,))


def under_two_names(lines: list[str]) -> list[str]:
    """Charge the first wallet once more, with the token written in another way."""
    [at, *_] = [n for n, line in enumerate(lines) if '"credit_kind":"fee"' in line]
    row = json.loads(lines[at])
    row |= {"asset": "x:" + row["asset"], "amount": "5000.000000000"}
    return [*lines[:at], canonical_json(row).decode() + "\n", *lines[at:]]


Edit = Callable[[ExportManifest], ExportManifest]
DISHONEST: dict[str, tuple[str, Lines, Edit, str]] = {
    "an amount": ("records.jsonl", jsonl_row("amount", "0.000000008"), same, "records"),
    "a charge": ("records.jsonl", jsonl_row("charge", "0.000000006"), same, "records"),
    "a payer": ("records.jsonl", jsonl_row("payer", f"eip155:31337:{wallet(9)}"), same, "records"),
    "an outcome": ("records.jsonl", jsonl_row("outcome", "failed"), same, "records"),
    "tokens as text": ("records.jsonl", jsonl_row("output_tokens", "5"), same, "records"),
    "tokens": ("records.jsonl", jsonl_row("output_tokens", 6), same, "records"),
    "a time": ("records.jsonl", jsonl_row("completed_at", "2025-11-02T00:00:00Z"), same, "records"),
    "a place": ("records.jsonl", jsonl_row("place", 77), same, "records"),
    "a booking before": (
        "records.jsonl",
        jsonl_row("booked_at", "2025-10-31T23:59:59Z"),
        same,
        "records",
    ),
    "a booking after": (
        "records.jsonl",
        jsonl_row("booked_at", "2025-12-01T00:00:00Z"),
        same,
        "records",
    ),
    "a member more": ("records.jsonl", jsonl_row("note", "x"), same, "records"),
    "a row less": ("records.jsonl", lambda lines: lines[:-1], same, "records"),
    "a row twice": ("records.jsonl", lambda lines: [*lines, lines[-1]], same, "records"),
    "rows swapped": (
        "records.jsonl",
        lambda lines: [lines[1], lines[0], *lines[2:]],
        same,
        "records",
    ),
    "a row that breaks off": (
        "records.jsonl",
        lambda lines: [*lines[:-1], lines[-1][:-5]],
        same,
        "records",
    ),
    "evidence that breaks off": ("evidence.jsonl", lambda lines: lines[:-1], same, "records"),
    "evidence twice": ("evidence.jsonl", lambda lines: lines * 2, same, "records"),
    "a leaf outside": ("evidence.jsonl", lambda lines: [*lines, lines[-1]], same, "records"),
    "leaves swapped": (
        "evidence.jsonl",
        lambda lines: [*lines[:1], lines[2], lines[1], *lines[3:]],
        same,
        "records",
    ),
    "a record changed": ("evidence.jsonl", of_record(cheaper), same, "records"),
    "a signature": (
        "evidence.jsonl",
        of_record(lambda r, s: (r, bytes([s[0] ^ 1]) + s[1:])),
        same,
        "records",
    ),
    "a record left out": ("evidence.jsonl", hidden, same, "records"),
    "a header": ("evidence.jsonl", lambda lines: [flipped(lines[0]), *lines[1:]], same, "records"),
    "a transfer's amount": (
        "transfers.jsonl",
        lambda lines: [line.replace("0.000000007", "0.000000008") for line in lines],
        same,
        "transfers",
    ),
    "a transfer less": ("transfers.jsonl", lambda lines: lines[:-1], same, "transfers"),
    "a transfer's time": (
        "transfers.jsonl",
        jsonl_row("booked_at", "2025-12-01T00:00:00Z"),
        same,
        "transfers",
    ),
    "charges under a second name of the token": (
        "transfers.jsonl",
        under_two_names,
        lambda m: replace(m, transfers=m.transfers + 1),
        "transfers",
    ),
    "another chain's token": (
        "transfers.jsonl",
        lambda lines: [
            line.replace('"asset":"eip155:31337:', '"asset":"eip155:1:') for line in lines
        ],
        same,
        "transfers",
    ),
    "sums": ("records.jsonl", unchanged, more_sums, "sums"),
    "a count": ("records.jsonl", unchanged, lambda m: replace(m, records=11), "sums"),
    "no sums": ("records.jsonl", unchanged, lambda m: replace(m, sums=()), "sums"),
    "a batch": ("records.jsonl", unchanged, lambda m: replace(m, first_batch=1), "sums"),
    "a last batch": ("records.jsonl", unchanged, lambda m: replace(m, last_batch=7), "sums"),
    "a log size": ("records.jsonl", unchanged, lambda m: replace(m, log_size=3), "sums"),
    "a log size to come": ("records.jsonl", unchanged, lambda m: replace(m, log_size=99), "log"),
    "an interval": (
        "records.jsonl",
        unchanged,
        lambda m: replace(m, to_at=m.from_at + 1),
        "records",
    ),
    "no interval": ("records.jsonl", unchanged, lambda m: replace(m, to_at=m.from_at), "manifest"),
    "a format": ("records.jsonl", unchanged, lambda m: replace(m, format="csv"), "files"),
    "no format": ("records.jsonl", unchanged, lambda m: replace(m, format="pdf"), "manifest"),
    "another log": (
        "records.jsonl",
        unchanged,
        lambda m: replace(m, origin="x.example"),
        "manifest",
    ),
}


async def relogged_copy(
    archive: Archive, folder: Path, name: str, edit: Lines, change: Edit
) -> tuple[int, dict[str, str]]:
    rewritten(folder / name, edit)
    await relogged(archive, folder, change)
    return verify(folder, policy())


async def test_nothing_that_was_signed_otherwise_passes_though_the_logs_key_vouches_for_it(
    exporter: Exporter, tmp_path: Path
) -> None:
    await exporter.export(tmp_path / "honest", Format.JSONL)
    for number, (case, (name, edit, change, step)) in enumerate(DISHONEST.items()):
        folder = tmp_path / f"case-{number}"
        shutil.copytree(tmp_path / "honest", folder)
        code, said = await relogged_copy(exporter.archive, folder, name, edit, change)
        assert (case, code, list(said)[-1]) == (case, 1, step), said


def csv_cell(column: str, value: str) -> Lines:
    """Change a cell of the third row."""

    def edit(lines: list[str]) -> list[str]:
        heading = next(csv.reader(lines[:1]))
        cells = next(csv.reader(lines[3:4]))
        cells[heading.index(column)] = value
        return [*lines[:3], ",".join(cells) + "\n", *lines[4:]]

    return edit


async def test_every_signed_cell_of_a_csv_row_is_compared(
    exporter: Exporter, tmp_path: Path
) -> None:
    from ledger.export_row import SIGNED  # noqa: PLC0415

    await exporter.export(tmp_path / "honest", Format.CSV)
    for column in SIGNED:
        folder = tmp_path / column.name
        shutil.copytree(tmp_path / "honest", folder)
        code, said = await relogged_copy(
            exporter.archive, folder, "records.csv", csv_cell(column.name, "7x"), same
        )
        assert (code, list(said)[-1]) == (1, "records")
        assert column.name in said["records"]


async def test_a_policy_that_trusts_another_key_or_contract_refuses(
    exporter: Exporter, tmp_path: Path
) -> None:
    await exporter.export(tmp_path / "out", Format.CSV)
    whole = policy()
    key = str(exporter.archive.terms.signer.verifier)
    for changed, step in (
        (policy(f"retired {key} 1"), "keys"),
        (policy(f"retired {exporter.archive.terms.record_key} 1"), "records"),
        (policy(f"record-key {wallet(5)}"), "records"),
        (whole.replace(DOMAIN.verifying_contract, wallet(6)), "records"),
    ):
        code, said = verify(tmp_path / "out", changed)
        assert (code, list(said)[-1]) == (1, step), said


async def test_the_command_tells_each_step_and_ends_with_its_code(
    exporter: Exporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await exporter.export(tmp_path / "out", Format.CSV)
    trusted = tmp_path / "policy.txt"
    trusted.write_text(policy())
    capsys.readouterr()
    assert main(["export", str(tmp_path / "out"), "--policy", str(trusted), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verified"]
    assert [each["step"] for each in told["steps"]] == [
        "keys", "manifest", "log", "files", "records", "transfers", "sums",
    ]  # fmt: skip
    assert main(["export", str(tmp_path / "out"), "--policy", str(trusted)]) == 0
    assert "does not prove" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "none"), "--policy", str(trusted)]) == 64
    assert main(["export", str(tmp_path), "--policy", str(trusted)]) == 64
    (tmp_path / "out" / "records.csv").write_text("")
    assert main(["export", str(tmp_path / "out"), "--policy", str(trusted)]) == 1
    assert "INVALID" in capsys.readouterr().out


def witness_line(witness: NoteSigner, note: bytes) -> bytes:
    """Cosign a checkpoint as a witness that signs notes."""
    return note + witness.line(Note.parse(note).text).encode()


@pytest.mark.parametrize("left_out", ["keys", "log", "records", None])
async def test_every_checkpoint_of_an_export_needs_the_witnesses_of_the_policy(
    exporter: Exporter, tmp_path: Path, left_out: str | None
) -> None:
    witness = NoteSigner("witness.example/w", seed("witness"))
    trusting = policy().replace("quorum none", f"witness w {witness.verifier}\nquorum w")
    out = tmp_path / "out"
    await exporter.export(out, Format.CSV)

    def cosigned(line: str, step: str) -> str:
        document = json.loads(line)
        if "log_proof" not in document or step == left_out:
            return line
        proof = LogProof.parse(document["log_proof"])
        proof = replace(proof, checkpoint=witness_line(witness, proof.checkpoint))
        return canonical_json(document | {"log_proof": proof.text()}).decode() + "\n"

    rewritten(out / "keys.jsonl", lambda lines: [cosigned(each, "keys") for each in lines])
    rewritten(out / "evidence.jsonl", lambda lines: [cosigned(each, "records") for each in lines])
    keys = (out / "keys.jsonl").read_bytes()
    await relogged(exporter.archive, out, same)
    assert (out / "keys.jsonl").read_bytes() == keys
    if left_out != "log":
        path = out / "manifest.tlog-proof"
        proof = LogProof.parse(path.read_text())
        proof = replace(proof, checkpoint=witness_line(witness, proof.checkpoint))
        path.write_text(proof.text())
    code, said = verify(out, trusting)
    assert (code, list(said)[-1]) == ((0, "sums") if left_out is None else (1, left_out)), said


async def test_a_batch_proved_for_another_checkpoint_than_its_own_is_refused(
    exporter: Exporter, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    await exporter.export(out, Format.CSV)
    reader = exporter.archive.reader

    latest = {index: await reader.proof(LogIndex(index)) for index in range(4)}

    def later(line: str) -> str:
        document = json.loads(line)
        if "header" not in document:
            return line
        index = LogProof.parse(document["log_proof"]).index
        return canonical_json(document | {"log_proof": latest[index].text()}).decode() + "\n"

    rewritten(out / "evidence.jsonl", lambda lines: [later(each) for each in lines])
    await relogged(exporter.archive, out, same)
    code, said = verify(out, policy())
    assert (code, list(said)[-1]) == (1, "records"), said
    assert "just after" in said["records"]


async def test_a_file_of_another_length_is_not_read(exporter: Exporter, tmp_path: Path) -> None:
    await exporter.export(tmp_path / "out", Format.CSV)
    with (tmp_path / "out" / "records.csv").open("r+b") as file:
        file.truncate(1 << 42)  # a hole: no room is taken, and reading it would take days
    code, said = verify(tmp_path / "out", policy())
    assert (code, list(said)[-1]) == (1, "files")
