"""One byte, one member, one part of a good receipt changed: each is refused, by the right step."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import pytest

from ledger.authorization import RequestAuthorization
from ledger.quote import Quote
from ledger.receipt import MAX_RECEIPT_BYTES
from ledger.usage import UsageRecord
from ledger.verify.exits import Exit
from ledger.verify.verdict import Step
from tests.unit.ledger.verify.checking import (
    document,
    good,
    other_world,
    refusal,
    subject,
    verdict_on,
    world,
)
from tests.unit.ledger.verify.mutating import (
    ELSEWHERE,
    Case,
    anchor_of_another_log,
    at,
    batch_index_for_log_index,
    delete,
    drop_signature,
    earlier_checkpoint,
    entry_text,
    flip_base64,
    flip_hex,
    flip_proof,
    header_of_another_batch,
    high_s,
    in_anchor,
    in_every_checkpoint,
    in_header,
    in_message,
    log_index_for_batch_index,
    lower_payer,
    neighbour,
    note_line,
    other,
    other_batch,
    proof_lines,
    put,
    signature_of_checkpoint,
    swap_batch_proof,
    take,
    v_of_zero,
    whole_other_log,
)

MEMBERS = [
    *(
        in_message("record", each.name)
        for each in UsageRecord.TYPE.fields
        if each.name != "version"
    ),
    *(in_message("quote", each.name) for each in Quote.TYPE.fields),
    *(in_message("acceptance", each.name) for each in RequestAuthorization.TYPE.fields),
    *(in_message("supplier", each) for each in json.loads(document()["supplier"]["statement"])),
    in_header("version", Step.BATCH),
    in_header("number", Step.LOG),
    in_header("start", Step.BATCH),
    in_header("end", Step.BATCH),
    in_header("count", Step.BATCH),
    in_header("records_root", Step.BATCH),
    in_header("first_at", Step.LOG),
    in_header("last_at", Step.LOG),
    in_header("key_id", Step.HEADER),
    in_header("previous_header", Step.LOG),
]

SIGNED = [
    Case("record.version is 2", in_message("record", "version").change, Step.RECORD, "version 2"),
    Case("record signature flipped", flip_hex("record", "signature"), Step.RECORD_SIGNATURE),
    Case("quote signature flipped", flip_hex("quote", "signature"), Step.QUOTE_SIGNATURE),
    Case(
        "acceptance signature flipped",
        flip_hex("acceptance", "signature"),
        Step.ACCEPTANCE_SIGNATURE,
    ),
    Case("agent's signature flipped", flip_hex("supplier", "signature"), Step.STATEMENT_SIGNATURE),
    Case("agent's key flipped", flip_hex("supplier", "public_key"), Step.STATEMENT_SIGNATURE),
    Case("record signature with high s", high_s("record"), Step.RECORD_SIGNATURE, "upper half"),
    Case("quote signature with high s", high_s("quote"), Step.QUOTE_SIGNATURE, "upper half"),
    Case(
        "acceptance signature with high s",
        high_s("acceptance"),
        Step.ACCEPTANCE_SIGNATURE,
        "upper half",
    ),
    Case("record signature with v of 0", v_of_zero, Step.RECORD_SIGNATURE, "v is"),
    Case(
        "record signature of zeros",
        put("record", "signature", value="0x" + "00" * 65),
        Step.RECORD_SIGNATURE,
    ),
    Case("another record's signature", neighbour("record", "signature"), Step.RECORD_SIGNATURE),
    Case("record of another gateway", take("record"), Step.RECORD_SIGNATURE, "no record key"),
    Case("quote of another job", neighbour("quote"), Step.QUOTE, "quoteDigest"),
    Case("acceptance of another job", neighbour("acceptance"), Step.ACCEPTANCE, "acceptDigest"),
    Case("statement of another job", neighbour("supplier"), Step.STATEMENT, "supplierStatement"),
    Case("statement left out", put("supplier", value=None), Step.STATEMENT, "leaves out"),
    Case("opening of another job", neighbour("opening"), Step.OPENING, "request"),
    Case(
        "answer of another job",
        neighbour("opening", "answer"),
        Step.OPENING,
        "answer",
    ),
    Case(
        "another finish reason",
        put("opening", "answer", "finish_reason", value="length"),
        Step.OPENING,
    ),
    Case("request salt flipped", flip_hex("opening", "request_salt"), Step.OPENING),
    Case(
        "request with one more space",
        lambda given: put("opening", "request", value=given["opening"]["request"] + " ")(given),
        Step.OPENING,
    ),
    Case(
        "answer with a lone surrogate",
        put("opening", "answer", "content", value="\ud800"),
        Step.FORM,
    ),
]

PLACED = [
    Case("batch proof flipped", flip_proof, Step.BATCH, "another root"),
    Case("batch proof swapped", swap_batch_proof, Step.BATCH),
    Case("batch proof of a neighbour", neighbour("batch", "proof"), Step.BATCH),
    Case("batch proof one short", lambda given: given["batch"]["proof"].pop(), Step.BATCH, "fewer"),
    Case(
        "batch proof one long",
        lambda given: given["batch"]["proof"].append("0x" + "00" * 32),
        Step.BATCH,
        "more hashes",
    ),
    Case("batch index of a neighbour", neighbour("batch", "index"), Step.BATCH),
    Case("batch index beyond the batch", put("batch", "index", value="6"), Step.BATCH, "no leaf"),
    Case("log index in place of batch index", log_index_for_batch_index, Step.BATCH),
    Case("batch index in place of log index", batch_index_for_log_index, Step.RECORD_SIGNATURE),
    Case("header of another batch", header_of_another_batch, Step.BATCH),
    Case("another batch", other_batch, Step.RECORD_SIGNATURE),
    Case("batch of another log", take("batch"), Step.BATCH),
    Case(
        "log index one less",
        proof_lines(at(1, lambda _: "index 3")),
        Step.RECORD_SIGNATURE,
        "no record key",
    ),
    Case(
        "log index beyond the log",
        proof_lines(at(1, lambda _: "index 5")),
        Step.LOG,
        "no leaf",
    ),
    Case("log proof flipped", proof_lines(at(2, lambda line: flip_base64(line, 3))), Step.LOG),
    Case("log proof one short", proof_lines(lambda lines: lines.pop(2)), Step.LOG),
    Case("log proof one long", proof_lines(lambda lines: lines.insert(2, lines[2])), Step.LOG),
]

TRUSTED = [
    Case("checkpoint of another size", earlier_checkpoint, Step.CHECKPOINT, "different"),
    Case(
        "size of the checkpoint changed",
        in_every_checkpoint(note_line(1, lambda _: "6")),
        Step.CHECKPOINT,
        "not a signature",
    ),
    Case(
        "size of the checkpoint before the rotation",
        in_every_checkpoint(note_line(1, lambda _: "3")),
        Step.CHECKPOINT,
        "no",
    ),
    Case(
        "root of the checkpoint flipped",
        in_every_checkpoint(note_line(2, lambda line: flip_base64(line, 0))),
        Step.CHECKPOINT,
        "not a signature",
    ),
    Case(
        "origin of the checkpoint changed",
        in_every_checkpoint(note_line(0, lambda line: line + "x")),
        Step.CHECKPOINT,
        "not of",
    ),
    Case(
        "signature of the checkpoint flipped",
        in_every_checkpoint(note_line(4, signature_of_checkpoint)),
        Step.CHECKPOINT,
        "not a signature",
    ),
    Case(
        "checkpoint of another log",
        in_every_checkpoint(lambda _: other_world().checkpoint().decode()),
        Step.CHECKPOINT,
        "not signed by a key",
    ),
    Case("last key entry left out", lambda given: given["keys"].pop(1), Step.CHECKPOINT),
    Case("all key entries left out", put("keys", value=[]), Step.CHECKPOINT),
    Case("key entries in another order", lambda given: given["keys"].reverse(), Step.KEYS, "order"),
    Case("a key entry twice", lambda given: given["keys"].append(given["keys"][1]), Step.KEYS),
    Case("key entries of another log", take("keys"), Step.KEYS, "signed by a key of the policy"),
    Case("rotation without the old key", entry_text(drop_signature(0)), Step.KEYS),
    Case("rotation without the new key", entry_text(drop_signature(1)), Step.KEYS),
    Case(
        "rotation table changed",
        entry_text(lambda entry: entry.replace('"from":"4"', '"from":"5"', 1)),
        Step.KEYS,
    ),
    Case(
        "rotation at another index",
        proof_lines(at(1, lambda _: "index 2"), "1"),
        Step.KEY_ENTRIES,
    ),
    Case(
        "proof of a rotation flipped",
        proof_lines(at(2, lambda line: flip_base64(line, 3)), "1"),
        Step.KEY_ENTRIES,
    ),
    Case("receipt of another gateway", whole_other_log, Step.KEYS),
]

FORMED = [
    *(Case(f"{name} is missing", delete(name), Step.FORM, name) for name in document()),
    Case("an unknown member", put("extra", value="x"), Step.FORM, "extra"),
    Case("another format", put("format", value="offpeak/receipt@v2"), Step.FORM, "format"),
    Case("an empty anchor", put("anchor", value={}), Step.FORM, "anchor"),
    Case("a contract check of nothing", put("acceptance", "contract_check", value={}), Step.FORM),
    Case("batch without log proof", put("log_proof", value=None), Step.FORM, "together"),
    Case("log proof without batch", put("batch", value=None), Step.FORM, "together"),
    Case("a number instead of text", put("batch", "index", value=2), Step.FORM, "batch.index"),
    Case("a huge number", put("batch", "index", value=10**400), Step.FORM, "2^53"),
    Case("a huge decimal", put("batch", "index", value="9" * 400), Step.FORM, "batch.index"),
    Case("a float", put("batch", "index", value=1.5), Step.FORM, "integer"),
    Case("a leading zero", put("batch", "index", value="02"), Step.FORM, "batch.index"),
    Case("an Arabic digit", put("batch", "index", value="٢"), Step.FORM, "batch.index"),
    Case("upper-case hex", put("supplier", "public_key", value="0x" + "AB" * 32), Step.FORM),
    Case("too many proof hashes", put("batch", "proof", value=["0x"] * 33), Step.FORM),
    Case("a list instead of an object", put("record", value=[]), Step.FORM, "record"),
    Case("a short signature", put("record", "signature", value="0x" + "00" * 64), Step.FORM),
    Case("nothing signed", put("record", "message", value=""), Step.RECORD),
    Case(
        "a space in the record",
        lambda given: put("record", "message", value=given["record"]["message"] + " ")(given),
        Step.RECORD,
        "8785",
    ),
    Case(
        "an address in lower case",
        lower_payer,
        Step.RECORD,
        "EIP-55",
    ),
    Case(
        "a member of the record twice",
        lambda given: put(
            "record", "message", value='{"salt":"",' + given["record"]["message"][1:]
        )(given),
        Step.RECORD,
        "twice",
    ),
    Case(
        "a huge number in the record",
        in_message("record", "heldNano", lambda _: "9" * 78).change,
        Step.RECORD,
        "heldNano",
    ),
    Case(
        "a negative charge", in_message("record", "chargeNano", lambda _: "-1").change, Step.RECORD
    ),
    Case("an unknown outcome", in_message("record", "outcome", lambda _: "5").change, Step.RECORD),
    Case(
        "a carriage return in a checkpoint",
        in_every_checkpoint(lambda note: note.replace("\n", "\r\n", 1)),
        Step.CHECKPOINT,
    ),
]


ANCHORED = [
    Case("anchor on another chain", in_anchor("chain_id", other), Step.ANCHOR, "on chain 31338"),
    Case("anchor in another contract", in_anchor("contract", lambda _: ELSEWHERE), Step.ANCHOR),
    Case("anchor of another size", in_anchor("size", other), Step.ANCHOR),
    Case("anchor of another root", in_anchor("root", other), Step.ANCHOR),
    Case("anchor contract in lower case", in_anchor("contract", str.lower), Step.FORM, "EIP-55"),
    Case("anchor block in hex", in_anchor("block_number", lambda _: "0x7"), Step.FORM),
    Case("anchor with a short hash", in_anchor("tx_hash", lambda _: "0x00"), Step.FORM),
    Case("anchor of another log", anchor_of_another_log, Step.ANCHOR),
]


CASES = list(chain(MEMBERS, SIGNED, PLACED, TRUSTED, FORMED, ANCHORED))


def test_the_receipt_that_is_changed_is_a_good_one() -> None:
    assert refusal(verdict_on(good())) is None
    assert refusal(verdict_on(document())) is None


def test_there_are_at_least_sixty_changes_and_each_has_its_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_changed_receipt_is_refused_by_the_step_that_sees_it(case: Case) -> None:
    given = document()
    case.change(given)
    assert refusal(verdict_on(json.dumps(given).encode()), case.word) == case.step


def raw(change: Callable[[bytes], bytes]) -> bytes:
    return change(good().encode())


BYTES = {
    "empty": lambda _: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "truncated by one byte": lambda data: data[:-3],
    "something after the end": lambda data: data + b"{}",
    "not UTF-8": lambda data: data.replace("Ü".encode(), b"\xdc"),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "a member twice": lambda data: data.replace(b'"anchor"', b'"anchor": null, "anchor"', 1),
    "deep nesting": lambda _: b"[" * 100_000,
    "deep nesting of objects": lambda _: b'{"a":' * 100_000,
    "a string left open": lambda _: b'{"a": "' + b'\\"' * 1_000_000,
    "NaN": lambda data: data.replace(b'"anchor": null', b'"anchor": NaN'),
    "a list": lambda _: b"[]",
    "zeros": lambda _: bytes(1000),
    "too large": lambda data: data + b" " * MAX_RECEIPT_BYTES,
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_receipt_are_refused_as_form(name: str) -> None:
    assert refusal(verdict_on(raw(BYTES[name]))) == Step.FORM
    assert verdict_on(raw(BYTES[name])).exit is Exit.INVALID


def test_a_pending_receipt_cannot_pass_as_included() -> None:
    stripped = replace(good(), batch=None, log_proof=None)
    assert verdict_on(stripped).exit is Exit.PENDING


def test_the_subject_is_in_a_batch_of_several_after_the_rotation() -> None:
    assert len(world().batches[2].jobs) == 6
    assert subject() in world().batches[2].jobs
