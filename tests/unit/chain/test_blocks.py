"""Answers of nodes: any member that is missing or malformed makes the whole unusable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chain.blocks import block_parameter, parse_block, parse_fees, parse_log, parse_receipt
from app.chain.quantities import MalformedValue

HASH, OTHER = "0x" + "11" * 32, "0x" + "22" * 32
ADDRESS = "0x" + "ab" * 20
BLOCK = {
    "number": "0x10",
    "hash": HASH,
    "parentHash": OTHER,
    "timestamp": "0x6b0e21dc",
    "baseFeePerGas": "0x7",
}
LOG = {
    "address": ADDRESS,
    "topics": [HASH],
    "data": "0x",
    "blockNumber": "0x10",
    "blockHash": HASH,
    "transactionHash": OTHER,
    "logIndex": "0x0",
    "removed": False,
}
RECEIPT = {
    "transactionHash": OTHER,
    "blockNumber": "0x10",
    "blockHash": HASH,
    "status": "0x1",
    "from": ADDRESS,
    "contractAddress": None,
    "gasUsed": "0x5208",
    "effectiveGasPrice": "0x9",
    "logs": [LOG],
}
FEES = {"baseFeePerGas": ["0x5", "0x6", "0x7"], "reward": [["0x3"], ["0x1"], ["0x2"]]}
junk = st.one_of(
    st.none(),
    st.integers(),
    st.booleans(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.just({}),
)


def test_whole_answers_are_read() -> None:
    assert parse_block(BLOCK).number == 16
    assert parse_log(LOG).topics == (b"\x11" * 32,)
    receipt = parse_receipt(RECEIPT)
    assert (receipt.succeeded, receipt.contract, receipt.logs) == (True, None, (parse_log(LOG),))


@given(st.sampled_from(sorted(BLOCK)), junk)
def test_a_block_with_one_wrong_member_is_refused(name: str, value: object) -> None:
    with pytest.raises(MalformedValue):
        parse_block({**BLOCK, name: value})
    with pytest.raises(MalformedValue):
        parse_block({key: held for key, held in BLOCK.items() if key != name})


@given(st.sampled_from(sorted(set(LOG) - {"removed"})), junk)
def test_a_log_with_one_wrong_member_is_refused(name: str, value: object) -> None:
    if (name, value) == ("topics", []):
        return  # an anonymous event
    with pytest.raises(MalformedValue):
        parse_log({**LOG, name: value})


def test_a_removed_log_is_no_log() -> None:
    for removed in (True, "true", 1):
        with pytest.raises(MalformedValue):
            parse_log({**LOG, "removed": removed})


@given(st.sampled_from(sorted(set(RECEIPT) - {"contractAddress"})), junk)
def test_a_receipt_with_one_wrong_member_is_refused(name: str, value: object) -> None:
    if (name, value) == ("logs", []):
        return
    with pytest.raises(MalformedValue):
        parse_receipt({**RECEIPT, name: value})


@pytest.mark.parametrize("name", ["transactionHash", "blockHash"])
def test_a_receipt_with_another_transactions_logs_is_refused(name: str) -> None:
    with pytest.raises(MalformedValue):
        parse_receipt({**RECEIPT, "logs": [{**LOG, name: "0x" + "33" * 32}]})


def test_a_reverted_transaction_has_not_succeeded_and_another_status_is_none() -> None:
    assert not parse_receipt({**RECEIPT, "status": "0x0"}).succeeded
    with pytest.raises(MalformedValue):
        parse_receipt({**RECEIPT, "status": "0x2"})


def test_fees_are_the_next_blocks_base_and_the_median_reward_and_never_nothing() -> None:
    assert (parse_fees(FEES).base, parse_fees(FEES).priority) == (7, 2)
    assert parse_fees({"baseFeePerGas": ["0x7"]}).priority == 1
    wrongs: tuple[object, ...] = ({}, {"baseFeePerGas": []}, {**FEES, "reward": [[None]]}, None)
    for wrong in wrongs:
        with pytest.raises(MalformedValue):
            parse_fees(wrong)


def test_a_hash_is_named_in_the_form_of_eip_1898() -> None:
    assert block_parameter(b"\x11" * 32) == {"blockHash": HASH}
    assert block_parameter(16) == "0x10"
    assert block_parameter("finalized") == "finalized"
