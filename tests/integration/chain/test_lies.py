"""What our client makes of nodes that lie, through a real proxy in front of a real chain."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from app.chain import calls
from app.chain.blocks import BlockRef
from app.chain.endpoint import RpcLimits
from app.chain.errors import RpcRefused, RpcUnavailable
from app.chain.keys import KeystoreKey
from app.chain.rpc import CallRequest, ChainRpc, open_rpc
from app.chain.sending import Outgoing, prepare
from app.chain.transaction import Transaction
from app.embedded.fault_rpc import Fault, FaultRpc
from tests.chain import ALICE, TEST_KEYS, Contracts, TestChain, address_of_key

QUICK = RpcLimits(connect_seconds=1, call_seconds=1, log_blocks=8, answer_bytes=100_000)
UNKNOWN = bytes(31) + b"\7"


@pytest.fixture
def first(chain: TestChain) -> Iterator[FaultRpc]:
    with FaultRpc(chain.url) as proxy:
        yield proxy


@pytest.fixture
def second(chain: TestChain) -> Iterator[FaultRpc]:
    with FaultRpc(chain.url) as proxy:
        yield proxy


@pytest.fixture
async def alone(first: FaultRpc) -> AsyncIterator[ChainRpc]:
    async with open_rpc([first.url], QUICK) as rpc:
        yield rpc


@pytest.fixture
async def both(first: FaultRpc, second: FaultRpc) -> AsyncIterator[ChainRpc]:
    async with open_rpc([first.url, second.url], QUICK) as rpc:
        yield rpc


BROKEN = [
    Fault(kind="http-status"),
    Fault(kind="http-status", value=429),
    Fault(kind="http-status", value=302),
    Fault(kind="rpc-error", value={"code": -32005, "message": "request rate exceeded"}),
    Fault(kind="rpc-error", value="not an object"),
    Fault(kind="cut"),
    Fault(kind="hang"),
    Fault(kind="garbage"),
    Fault(kind="other-id"),
    Fault(kind="result", value="0x007a69"),
    Fault(kind="result", value=31_337),
    Fault(kind="result", value={"number": "0x1"}),
]


@pytest.mark.parametrize("fault", BROKEN, ids=lambda fault: f"{fault.kind}-{fault.value}")
async def test_a_broken_endpoint_is_passed_over_and_one_alone_is_unavailable(
    both: ChainRpc, first: FaultRpc, second: FaultRpc, fault: Fault
) -> None:
    first.add(fault)
    assert await both.chain_id() == 31_337
    assert await both.chain_id() == 31_337
    assert (len(first.calls), len(second.calls)) == (1, 2)  # the good one is asked first next
    with pytest.raises(RpcUnavailable) as unknown:
        await both.by_url()[0].chain_id()
    assert "rpc-0 (127.0.0.1)" in str(unknown.value)
    assert first.url not in str(unknown.value)


async def test_when_nobody_answers_each_endpoint_says_why(
    both: ChainRpc, first: FaultRpc, second: FaultRpc
) -> None:
    first.add(Fault(kind="http-status"))
    second.add(Fault(kind="garbage"))
    with pytest.raises(RpcUnavailable) as unknown:
        await both.fees()
    assert unknown.value.reasons == (
        "rpc-0 (127.0.0.1): HTTP 500",
        "rpc-1 (127.0.0.1): HTTP 200 without JSON-RPC",
    )


async def test_not_found_is_never_a_negative_while_another_endpoint_knows(
    both: ChainRpc, first: FaultRpc, contracts: Contracts
) -> None:
    head = await both.block("latest")
    assert head is not None
    logs = await both.logs([contracts.token], head.number, head.number)
    first.add(Fault(kind="null"))
    assert await both.block(head.hash) == head
    assert await both.block(head.number) == head
    deposit = await contracts.chain.send_later(
        ALICE, contracts.token, calls.MINT.data(address_of_key(ALICE), 1)
    )
    assert await both.receipt(deposit.transaction_hash) == deposit
    assert await both.logs([contracts.token], head.number, head.number) == logs


async def test_not_found_by_one_and_unanswered_by_the_other_is_still_only_not_known(
    both: ChainRpc, first: FaultRpc, second: FaultRpc
) -> None:
    second.add(Fault(kind="cut"))
    assert await both.receipt(UNKNOWN) is None
    first.add(Fault(kind="http-status"))
    with pytest.raises(RpcUnavailable):
        await both.receipt(UNKNOWN)


@pytest.mark.parametrize("block", [UNKNOWN, 10**9])
async def test_a_read_at_a_block_that_nobody_has_is_unavailable_not_empty(
    both: ChainRpc, contracts: Contracts, block: BlockRef
) -> None:
    with pytest.raises(RpcUnavailable):
        await both.call(CallRequest(to=contracts.token, data=b"\x31\x3c\xe5\x67"), block)
    with pytest.raises(RpcUnavailable):
        await both.code(contracts.token, block)


async def test_another_block_than_the_asked_one_is_no_answer(
    alone: ChainRpc, first: FaultRpc, chain: TestChain
) -> None:
    chain.mine()
    first.add(Fault(kind="result", value=chain.ask("eth_getBlockByNumber", "0x0", False)))
    assert (await alone.block("latest")) is not None  # a stale head cannot be told by itself
    with pytest.raises(RpcUnavailable):
        await alone.block(1)
    with pytest.raises(RpcUnavailable):
        await alone.block(UNKNOWN)


async def test_a_stale_node_is_seen_by_asking_each_alone(
    both: ChainRpc, first: FaultRpc, chain: TestChain
) -> None:
    first.add(Fault(kind="frozen", method="eth_getBlockByNumber"))
    await both.block("latest")
    chain.mine(3)
    stale, fresh = [await one.block("latest") for one in both.by_url()]
    assert stale is not None
    assert fresh is not None
    assert fresh.number == stale.number + 3


async def test_log_queries_are_cut_to_the_limit_and_halved_when_a_node_says_so(
    alone: ChainRpc, first: FaultRpc, contracts: Contracts
) -> None:
    await contracts.chain.send_later(
        ALICE, contracts.token, calls.MINT.data(address_of_key(ALICE), 1)
    )
    contracts.chain.mine(20)
    head = contracts.chain.height()
    whole = await alone.logs([contracts.token], 0, head)
    assert whole
    assert first.count("eth_getLogs") == -(-(head + 1) // QUICK.log_blocks)
    asked = first.count("eth_getLogs")
    too_large = {"code": -32005, "message": "query returned more than 10000 results"}
    first.add(Fault(kind="rpc-error", method="eth_getLogs", count=1, value=too_large))
    assert await alone.logs([contracts.token], 0, head) == whole
    assert first.count("eth_getLogs") == 2 * asked + 2


async def test_a_single_block_that_is_too_large_is_unavailable_not_empty(
    alone: ChainRpc, first: FaultRpc, contracts: Contracts
) -> None:
    too_large = {"code": -32602, "message": "Log response size exceeded"}
    first.add(Fault(kind="rpc-error", method="eth_getLogs", value=too_large))
    with pytest.raises(RpcUnavailable):
        await alone.logs([contracts.token], 0, 8)
    first.heal()
    first.add(Fault(kind="result", value=["x" * QUICK.answer_bytes]))
    with pytest.raises(RpcUnavailable, match="over 100000 bytes"):
        await alone.logs([contracts.token], 0, 8)
    with pytest.raises(RpcUnavailable, match="over 100000 bytes"):
        await alone.fees()


async def test_logs_that_were_not_asked_for_are_no_answer(
    alone: ChainRpc, first: FaultRpc, contracts: Contracts
) -> None:
    where = {"fromBlock": "0x0", "toBlock": "latest"}
    every = contracts.chain.ask("eth_getLogs", where)
    assert isinstance(every, list)
    first.add(Fault(kind="result", method="eth_getLogs", value=every))
    with pytest.raises(RpcUnavailable, match="not asked for"):
        await alone.logs([contracts.token], 0, 8)
    first.heal()
    first.add(Fault(kind="result", method="eth_getLogs", value=[every[0], every[0]]))
    with pytest.raises(RpcUnavailable, match="the order of logs"):
        await alone.logs([contracts.token], 0, 8)
    removed = [{**every[0], "removed": True}]
    first.heal()
    first.add(Fault(kind="result", method="eth_getLogs", value=removed))
    with pytest.raises(RpcUnavailable, match="log is malformed"):
        await alone.logs([contracts.token], 0, 8)


async def test_a_send_that_was_not_answered_may_have_been_taken(
    alone: ChainRpc, first: FaultRpc, chain: TestChain
) -> None:
    key = KeystoreKey(TEST_KEYS[ALICE])
    outgoing = Outgoing(to=address_of_key(0), data=b"", value=1)
    signed = await key.sign(await prepare(alone, key.address, outgoing))
    first.add(Fault(kind="cut-after", method="eth_sendRawTransaction", count=1))
    with pytest.raises(RpcUnavailable):
        await alone.send_raw(signed.raw)
    receipt = await alone.receipt(signed.hash)
    assert receipt is not None
    assert receipt.succeeded
    assert (await alone.send_raw(signed.raw)).outcome in {"nonce-too-low", "already-known"}


async def test_what_a_node_says_to_a_transaction_is_told_apart(
    both: ChainRpc, first: FaultRpc, chain: TestChain
) -> None:
    key = KeystoreKey(TEST_KEYS[ALICE])
    outgoing = Outgoing(to=address_of_key(0), data=b"", value=1)
    chain.pause_mining()
    try:
        transaction = await prepare(both, key.address, outgoing)
        signed = await key.sign(transaction)
        assert (await both.send_raw(signed.raw)).outcome == "accepted"
        assert (await both.send_raw(signed.raw)).outcome == "already-known"
        other = await key.sign(await prepare(both, key.address, outgoing))
        assert other.transaction.nonce == transaction.nonce + 1
        lower = await key.sign(_with(transaction.max_fee - 1, transaction))
        assert (await both.send_raw(lower.raw)).outcome == "underpriced"
    finally:
        chain.resume_mining()
        chain.mine()
    assert (await both.send_raw(lower.raw)).outcome == "nonce-too-low"
    poor = KeystoreKey(bytes(31) + b"\x2a")
    costly = await poor.sign(_with(transaction.max_fee, transaction, nonce=0))
    assert (await both.send_raw(costly.raw)).outcome == "insufficient-funds"
    assert (await both.send_raw(b"\x02\xc0")).outcome == "refused"
    first.add(Fault(kind="result", method="eth_sendRawTransaction", value="0x" + "11" * 32))
    with pytest.raises(RpcUnavailable):
        await both.by_url()[0].send_raw(other.raw)


def _with(max_fee: int, like: Transaction, *, nonce: int | None = None) -> Transaction:
    return replace(like, max_fee=max_fee, nonce=like.nonce if nonce is None else nonce)


async def test_a_revert_is_told_from_a_node_in_trouble(both: ChainRpc, first: FaultRpc) -> None:
    reverting = CallRequest(to=None, data=bytes.fromhex("60006000fd"))
    with pytest.raises(RpcRefused):
        await both.call(reverting, "latest")
    first.add(Fault(kind="rpc-error", value={"code": -32000, "message": "header not found"}))
    with pytest.raises(RpcRefused):  # the second endpoint's word
        await both.call(reverting, "latest")
    with pytest.raises(RpcUnavailable):
        await both.by_url()[0].call(reverting, "latest")


async def test_a_key_in_a_url_is_shown_nowhere(first: FaultRpc) -> None:
    url = first.url.replace("http://", "http://user:hunter2@") + "/v3/hunter3"
    first.add(
        Fault(kind="rpc-error", value={"code": 1, "message": f"no plan for {url}", "data": url})
    )
    async with open_rpc([url], QUICK) as rpc:
        with pytest.raises(RpcUnavailable) as unknown:
            await rpc.chain_id()
        shown = str(unknown.value) + repr(unknown.value) + repr(rpc.endpoints) + rpc.label
    assert "hunter" not in shown
