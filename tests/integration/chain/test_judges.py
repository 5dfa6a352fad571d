"""web3 as the judge: the same calls, events, reads and senders, for values at random."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web3 import HTTPProvider, Web3
from web3.contract import Contract

from app.chain import calls
from app.chain.abi import Event, Function, encode_arguments
from app.chain.artifacts import ContractName, load_artifact
from app.chain.blocks import Log
from app.chain.contracts import TreasuryContract
from app.chain.errors import MalformedAnswer
from app.chain.events import ANCHOR_EVENTS, TOKEN_EVENTS, TREASURY_EVENTS, EventTable
from app.chain.keys import KeystoreKey
from app.chain.quantities import show_data
from app.chain.sending import created_address
from ledger.encoding import Address, checksum_address
from tests.chain import ALICE, BOB, TEST_KEYS, Contracts, address_of_key

OFFLINE = Web3()
TABLES: list[tuple[ContractName, EventTable]] = [
    ("Treasury", TREASURY_EVENTS),
    ("ReceiptAnchor", ANCHOR_EVENTS),
    ("MockUSDC", TOKEN_EVENTS),
]
EVENTS = [(name, kind) for name, table in TABLES for kind in table.kinds.values()]
CALLS = [
    (contract, function)
    for function in vars(calls).values()
    if isinstance(function, Function)
    for contract in ("Treasury", "ReceiptAnchor", "MockUSDC")
    if function.signature in set(load_artifact(contract).signatures("function"))
]
QUICK = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def theirs(name: ContractName) -> type[Contract]:
    return OFFLINE.eth.contract(abi=list(load_artifact(name).abi))


def values_of(solidity: str) -> st.SearchStrategy[Any]:
    """Values of a type as our code gives them."""
    if solidity.endswith("[]"):
        return st.lists(values_of(solidity[:-2]), max_size=4)
    if solidity == "address":
        return st.binary(min_size=20, max_size=20).map(show_data)
    if solidity == "bool":
        return st.booleans()
    if solidity == "bytes":
        return st.binary(max_size=100)
    if solidity.startswith("bytes"):
        size = int(solidity.removeprefix("bytes"))
        return st.binary(min_size=size, max_size=size)
    return st.integers(0, 2 ** int(solidity.removeprefix("uint")) - 1)


def as_web3(value: Any) -> Any:
    """A value as web3 takes it: it wants checksums."""
    if isinstance(value, list):
        return [as_web3(one) for one in value]
    is_address = isinstance(value, str) and len(value) == 42
    return checksum_address(Address(value)) if is_address else value


def as_ours(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("contract", "function"), CALLS, ids=lambda given: getattr(given, "name", given)
)
@QUICK
@given(data=st.data())
def test_call_data_is_web3s(
    contract: ContractName, function: Function, data: st.DataObject
) -> None:
    arguments = [data.draw(values_of(kind)) for kind in function.inputs]
    expected = theirs(contract).encode_abi(function.signature, args=as_web3(arguments))
    assert show_data(function.data(*arguments)) == expected


@pytest.mark.parametrize(
    ("contract", "kind"), EVENTS, ids=lambda given: getattr(given, "__name__", given)
)
@QUICK
@given(data=st.data())
def test_an_event_is_read_as_web3_reads_it(
    contract: ContractName, kind: Any, data: st.DataObject
) -> None:
    event: Event = kind.EVENT
    values = {p.name: data.draw(values_of(p.solidity)) for p in event.parameters}
    log = log_of(event, values)
    found = theirs(contract).events[event.name]().process_log(as_receipt(log))
    by_web3 = {name: as_ours(value) for name, value in found["args"].items()}
    assert event.arguments(log) == by_web3 == values
    assert kind(*values.values()) == dict(TABLES)[contract].decode(log)


def log_of(event: Event, values: dict[str, Any]) -> Log:
    indexed = [
        encode_arguments([p.solidity], values[p.name]) for p in event.parameters if p.indexed
    ]
    others = [p for p in event.parameters if not p.indexed]
    return Log(
        address=Address("0x" + "ab" * 20),
        topics=(event.topic, *indexed),
        data=encode_arguments([p.solidity for p in others], *(values[p.name] for p in others)),
        block_number=1,
        block_hash=bytes(32),
        transaction_hash=bytes(32),
        index=0,
    )


def as_receipt(log: Log) -> Any:
    return {
        "address": checksum_address(log.address),
        "topics": list(log.topics),
        "data": log.data,
        "blockNumber": log.block_number,
        "blockHash": log.block_hash,
        "transactionHash": log.transaction_hash,
        "transactionIndex": 0,
        "logIndex": log.index,
    }


@pytest.mark.parametrize(
    ("contract", "kind"), EVENTS, ids=lambda given: getattr(given, "__name__", given)
)
@QUICK
@given(junk=st.binary(max_size=31))
def test_an_event_with_other_data_is_refused(
    contract: ContractName, kind: Any, junk: bytes
) -> None:
    event: Event = kind.EVENT
    values = {p.name: _zero(p.solidity) for p in event.parameters}
    log = log_of(event, values)
    if log.data:
        with pytest.raises(MalformedAnswer):
            event.arguments(_with(log, data=junk))
    with pytest.raises(MalformedAnswer):
        event.arguments(_with(log, topics=log.topics[1:]))
    with pytest.raises(MalformedAnswer):
        event.arguments(_with(log, topics=(*log.topics, bytes(32))))
    assert dict(TABLES)[contract].decode(_with(log, topics=())) is None
    assert dict(TABLES)[contract].decode(_with(log, topics=(bytes(32),))) is None


def test_an_address_topic_with_more_than_an_address_is_refused() -> None:
    event = TREASURY_EVENTS.kinds[Event("ExitCancelled(address indexed payer)").topic].EVENT
    log = log_of(event, {"payer": "0x" + "ab" * 20})
    with pytest.raises(MalformedAnswer):
        event.arguments(_with(log, topics=(event.topic, b"\x01" + log.topics[1][1:])))


def _zero(solidity: str) -> Any:
    known: dict[str, Any] = {"address": "0x" + "00" * 20, "bytes32": bytes(32), "bytes": b""}
    return known.get(solidity, 0)


def _with(log: Log, *, data: bytes | None = None, topics: tuple[bytes, ...] | None = None) -> Log:
    return Log(
        address=log.address,
        topics=log.topics if topics is None else topics,
        data=log.data if data is None else data,
        block_number=log.block_number,
        block_hash=log.block_hash,
        transaction_hash=log.transaction_hash,
        index=log.index,
    )


async def test_web3_reads_the_same_chain_as_we_do(contracts: Contracts) -> None:
    chain, alice = contracts.chain, address_of_key(ALICE)
    await chain.send_later(ALICE, contracts.token, calls.MINT.data(alice, 90))
    await chain.send_later(ALICE, contracts.token, calls.APPROVE.data(contracts.treasury, 90))
    data = calls.deposit(address_of_key(BOB), 45, b"\x01" * 32)
    await chain.send_later(ALICE, contracts.treasury, data)
    sent = await chain.send_later(ALICE, contracts.treasury, data)
    web3 = Web3(HTTPProvider(chain.url))
    treasury = web3.eth.contract(
        address=Web3.to_checksum_address(contracts.treasury),
        abi=list(load_artifact("Treasury").abi),
    )
    async with chain.rpc() as rpc:
        head = await rpc.block("latest")
        assert head is not None
        block = web3.eth.get_block("latest")
        assert (head.number, head.hash, head.parent) == (
            block["number"],
            bytes(block["hash"]),
            bytes(block["parentHash"]),
        )
        assert (head.timestamp, head.base_fee) == (block["timestamp"], block["baseFeePerGas"])
        ours = await rpc.logs([contracts.treasury], 0, head.number)
        found = web3.eth.get_logs({"address": treasury.address, "fromBlock": 0})
        assert [(log.topics, log.data, log.index, log.transaction_hash) for log in ours] == [
            (
                tuple(bytes(topic) for topic in log["topics"]),
                bytes(log["data"]),
                log["logIndex"],
                bytes(log["transactionHash"]),
            )
            for log in found
        ]
        receipt = web3.eth.get_transaction_receipt(show_data(sent.transaction_hash))  # type: ignore[arg-type]  # hex is taken
        assert (sent.gas_used, sent.gas_price, sent.block_hash) == (
            receipt["gasUsed"],
            receipt["effectiveGasPrice"],
            bytes(receipt["blockHash"]),
        )
        read = TreasuryContract(rpc, contracts.treasury)
        account = await read.account(address_of_key(BOB), head.hash)
        assert (
            account.deposited
            == treasury.functions.available(checksum_address(address_of_key(BOB))).call()
        )
        assert await read.event_count(head.hash) == treasury.functions.eventCount().call() == 2


async def test_where_a_contract_is_created_follows_from_sender_and_nonce(
    contracts: Contracts,
) -> None:
    sender = KeystoreKey(TEST_KEYS[0]).address
    first = contracts.first_block
    created = [created_address(sender, nonce) for nonce in range(3)]
    assert created == [contracts.token, contracts.treasury, contracts.anchor]
    assert first == 1
