"""The form of a receipt: read back as written, and every rule refuses something."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import Checkpoint, LogProof
from ledger.encoding import Address
from ledger.errors import BadReceipt
from ledger.hashing import sha256
from ledger.merkle import BatchIndex, LogIndex, TreeHead
from ledger.note import NoteSigner
from ledger.onchain import MAX_CONTRACT_SIGNATURE, Anchor, ContractCheck, ContractMethod
from ledger.receipt import (
    MAX_BATCH_PROOF,
    MAX_KEY_ENTRIES,
    MAX_RECEIPT_BYTES,
    Acceptance,
    BatchPart,
    KeyEntry,
    Opening,
    Receipt,
    SignedMessage,
    SupplierPart,
)

LOG = NoteSigner("log.example/test", sha256(b"TEST log"))
PROOF = LogProof(
    LogIndex(1), (bytes(32),), Checkpoint("log.example/test", TreeHead(2, bytes(32))).sign([LOG])
)
RECEIPT = Receipt(
    record=SignedMessage('{"a":"b"}', b"\1" * 65),
    quote=SignedMessage("{}", b"\2" * 65),
    acceptance=Acceptance("\u2028 \u00e9 \U0001f600", b"\3" * 65),
    supplier=SupplierPart("{}", b"\4" * 64, b"\5" * 32),
    batch=BatchPart(b"{}", BatchIndex(0), (b"\6" * 32,)),
    log_proof=PROOF,
    keys=(KeyEntry(b"entry\n", PROOF),),
    opening=Opening("{}", b"\7" * 32, "Billing", "stop"),
)
ANCHOR_AT = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512"
ANCHORED = replace(
    RECEIPT,
    anchor=Anchor(
        chain_id=31337,
        contract=Address(ANCHOR_AT),
        size=2,
        root=bytes(32),
        tx_hash=b"\1" * 32,
        block_number=7,
        block_hash=b"\2" * 32,
        log_index=0,
    ),
)
BY_CONTRACT = replace(
    RECEIPT,
    acceptance=Acceptance(
        "{}", b"\1" * 130, ContractCheck(ContractMethod.COUNTERFACTUAL, 9, b"\3" * 32)
    ),
)
ANCHOR = json.loads(ANCHORED.encode())["anchor"]
CHECK = json.loads(BY_CONTRACT.encode())["acceptance"]["contract_check"]
PENDING = replace(RECEIPT, batch=None, log_proof=None, keys=(), supplier=None, opening=None)
Change = Callable[[Any], object]
"""What is done to the document."""


def changed(change: Change) -> bytes:
    value = json.loads(RECEIPT.encode())
    change(value)
    return json.dumps(value).encode()


def put(member: str, **members: object) -> Change:
    return lambda value: value[member].update(members)


def replace_with(**members: object) -> Change:
    return lambda value: value.update(members)


@pytest.mark.parametrize(
    "receipt",
    [
        RECEIPT,
        PENDING,
        ANCHORED,
        BY_CONTRACT,
        replace(BY_CONTRACT, acceptance=replace(BY_CONTRACT.acceptance, signature=b"")),
        replace(RECEIPT, opening=Opening("{}", bytes(32), None, None)),
    ],
)
def test_a_receipt_is_read_back(receipt: Receipt) -> None:
    assert Receipt.parse(receipt.encode()) == receipt
    assert receipt.encode().endswith(b"}\n")


def test_what_a_receipt_does_not_hold_is_null_or_left_out() -> None:
    document = json.loads(RECEIPT.encode())
    assert document["anchor"] is None
    assert "contract_check" not in document["acceptance"]


def checked(**members: object) -> Change:
    return put("acceptance", contract_check={**CHECK, **members})


LINE = "0x" + "00" * 32
TOO_LONG = "0x" + "01" * (MAX_CONTRACT_SIGNATURE + 1)
ANSWER = {"content": "a", "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("format", replace_with(format="offpeak/receipt@v2")),
        ("format", replace_with(format=None)),
        ("anchor.chain_id", replace_with(anchor={})),
        ("anchor", replace_with(anchor={**ANCHOR, "more": ""})),
        ("anchor", replace_with(anchor=ANCHOR, batch=None, log_proof=None)),
        ("anchor.size", replace_with(anchor={**ANCHOR, "size": 2})),
        ("anchor.size", replace_with(anchor={**ANCHOR, "size": "02"})),
        ("anchor.chain_id", replace_with(anchor={**ANCHOR, "chain_id": str(2**53)})),
        ("anchor.block_number", replace_with(anchor={**ANCHOR, "block_number": "0x7"})),
        ("anchor.log_index", replace_with(anchor={**ANCHOR, "log_index": "-1"})),
        ("anchor.root", replace_with(anchor={**ANCHOR, "root": "0x" + "0A" * 32})),
        ("anchor.tx_hash", replace_with(anchor={**ANCHOR, "tx_hash": "0x00"})),
        ("anchor.contract", replace_with(anchor={**ANCHOR, "contract": ANCHOR_AT})),
        ("anchor.contract", replace_with(anchor={**ANCHOR, "contract": None})),
        ("acceptance.signature", put("acceptance", signature="0x" + "01" * 66)),
        ("acceptance.contract_check", put("acceptance", contract_check=None)),
        ("acceptance.contract_check", checked(more="")),
        ("acceptance.contract_check.method", checked(method="erc-20")),
        ("acceptance.contract_check.block_hash", checked(block_hash="0x")),
        ("acceptance.contract_check.block_number", checked(block_number=1)),
        ("acceptance.signature", put("acceptance", contract_check=CHECK, signature=TOO_LONG)),
        ("receipt", replace_with(more=1)),
        ("receipt.quote", lambda value: value.pop("quote")),
        ("record", replace_with(record=None)),
        ("record", put("record", more=1)),
        ("record.message", put("record", message={})),
        ("record.message", put("record", message="\ud800")),
        ("record.signature", put("record", signature="0x" + "01" * 64)),
        ("record.signature", put("record", signature="0x" + "0A" * 65)),
        ("quote.signature", put("quote", signature=None)),
        ("acceptance", replace_with(acceptance=[])),
        ("supplier", replace_with(supplier=[])),
        ("supplier.signature", put("supplier", signature="0x" + "01" * 65)),
        ("supplier.public_key", put("supplier", public_key="0x" + "01" * 31)),
        ("supplier.statement", put("supplier", statement=7)),
        ("batch.header", put("batch", header="\udfff")),
        ("batch.index", put("batch", index=0)),
        ("batch.index", put("batch", index="00")),
        ("batch.proof", put("batch", proof=[LINE] * (MAX_BATCH_PROOF + 1))),
        ("batch.proof[0]", put("batch", proof=["0x00"])),
        ("log_proof", replace_with(batch=None)),
        ("log_proof", replace_with(log_proof=None)),
        ("log_proof", replace_with(log_proof="c2sp.org/tlog-proof@v2\n")),
        ("log_proof", replace_with(log_proof=PROOF.text().replace("index 1", "index 01"))),
        ("log_proof", replace_with(log_proof=[])),
        ("keys", replace_with(keys=None)),
        ("keys", replace_with(keys=[{}] * (MAX_KEY_ENTRIES + 1))),
        ("keys[0]", replace_with(keys=[None])),
        ("keys[0].log_proof", lambda value: value["keys"][0].update(log_proof="")),
        ("keys[0].entry", lambda value: value["keys"][0].update(entry=None)),
        ("opening", replace_with(opening="text")),
        ("opening.request", put("opening", request=None)),
        ("opening.request_salt", put("opening", request_salt="0x")),
        ("opening.answer", put("opening", answer="Billing")),
        ("opening.answer", put("opening", answer={**ANSWER, "more": ""})),
        ("opening.answer.content", put("opening", answer={**ANSWER, "content": "\ud800"})),
        ("opening.answer.finish_reason", put("opening", answer={**ANSWER, "finish_reason": 0})),
    ],
)  # fmt: skip
def test_a_receipt_that_breaks_a_rule_is_refused(field: str, change: Change) -> None:
    with pytest.raises(BadReceipt) as refused:
        Receipt.parse(changed(change))
    assert refused.value.field == field


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        RECEIPT.encode()[:-3],
        RECEIPT.encode().replace(b'"anchor"', b'"format": "x", "anchor"'),
        RECEIPT.encode().decode().encode("utf-16"),
        b" " * (MAX_RECEIPT_BYTES + 1),
        b'{"format":' + b"[" * 1000,
    ],
)
def test_another_file_is_no_receipt(data: bytes) -> None:
    with pytest.raises(BadReceipt):
        Receipt.parse(data)


@given(st.integers(0, len(RECEIPT.encode()) - 1), st.binary(max_size=3))
def test_a_changed_file_is_refused_or_another_receipt(place: int, junk: bytes) -> None:
    data = bytearray(RECEIPT.encode())
    data[place : place + 1] = junk
    with contextlib.suppress(BadReceipt):
        again = Receipt.parse(bytes(data))
        assert Receipt.parse(again.encode()) == again
