"""A withdrawal while the node lies: it is paid once, late at worst, and never given up."""

from collections.abc import AsyncIterator

import pytest

from app.chain.endpoint import RpcLimits
from app.chain.errors import ChainError
from app.chain.rpc import ChainRpc, open_rpc
from app.embedded.fault_rpc import Fault, FaultRpc
from app.treasury.errors import FinalBlockUnknown
from tests.integration.treasury.house import House, house

__all__ = ["house"]

SEND, RECEIPT = "eth_sendRawTransaction", "eth_getTransactionReceipt"
UNDERPRICED = {"code": -32000, "message": "replacement transaction underpriced"}
POOR = {"code": -32003, "message": "insufficient funds for gas * price + value"}


@pytest.fixture
async def lying(house: House) -> AsyncIterator[tuple[FaultRpc, ChainRpc]]:
    """A node in front of the real one, and a client that soon gives it up."""
    with FaultRpc(house.contracts.chain.url) as proxy:
        async with open_rpc([proxy.url], RpcLimits(call_seconds=0.2)) as rpc:
            yield proxy, rpc


async def lied_to(house: House, rpc: ChainRpc, rounds: int) -> None:
    """Rounds of a worker who believes that node; what cannot be known is tried again."""
    for _ in range(rounds):
        try:
            await house.withdrawals(rpc=rpc).run_once()
            await house.sender(rpc=rpc).run_once()
        except (ChainError, FinalBlockUnknown):
            pass
        house.contracts.chain.finalize()
        await house.book()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="null", method=RECEIPT, count=4),
        Fault(kind="hang", method=RECEIPT, count=2),
        Fault(kind="error-after", method=SEND, count=2),
        Fault(kind="cut-after", method=SEND, count=2),
        Fault(kind="cut", method=SEND, count=2),
        Fault(kind="rpc-error", method=SEND, count=2, value=UNDERPRICED),
        Fault(kind="rpc-error", method=SEND, count=2, value=POOR),
        Fault(kind="error-after", method=SEND, count=1, value=UNDERPRICED),
        Fault(kind="http-status", method="*", count=4),
        Fault(kind="garbage", method="*", count=4),
        Fault(kind="frozen", method="eth_getTransactionCount", count=6),
        Fault(kind="null", method="eth_getBlockByNumber", count=4),
        Fault(kind="result", method="eth_getTransactionCount", count=6, value="0x0"),
        Fault(kind="hang", method=SEND, count=1),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.method}-{fault.count}",
)
async def test_a_lying_node_delays_a_payment_and_never_doubles_or_loses_it(
    house: House, lying: tuple[FaultRpc, ChainRpc], fault: Fault
) -> None:
    proxy, rpc = lying
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    proxy.add(fault)
    await lied_to(house, rpc, 3)
    proxy.heal()
    await lied_to(house, rpc, 4)
    assert fault.seen > 0
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.payments(wallet.address) == [1_000_000]
    assert len({row.nonce for row in house.transactions()}) == 1
    assert [row.state for row in house.transactions()] == ["done"]
    await house.check_books()


async def test_an_answer_that_the_price_is_too_low_makes_a_dearer_attempt(
    house: House, lying: tuple[FaultRpc, ChainRpc]
) -> None:
    proxy, rpc = lying
    wallet = await house.new_wallet()
    await house.ask(wallet, 1_000_000)
    proxy.add(Fault(kind="rpc-error", method=SEND, count=2, value=UNDERPRICED))
    await lied_to(house, rpc, 2)
    fees = house.rows("SELECT max_fee FROM offpeak.chain_attempt ORDER BY created_at")
    assert len(fees) == 2
    assert fees[1].max_fee * 8 >= fees[0].max_fee * 9


async def test_a_receipt_that_never_comes_leaves_it_waiting_and_replaces_nothing(
    house: House, lying: tuple[FaultRpc, ChainRpc]
) -> None:
    proxy, rpc = lying
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000)
    proxy.add(Fault(kind="null", method=RECEIPT))
    await lied_to(house, rpc, 4)
    [waits] = house.transactions()
    assert waits.state == "signed"
    assert waits.last_error.startswith("nonce-taken")  # said, not acted on
    assert len(house.rows("SELECT FROM offpeak.chain_attempt")) == 1
    assert (
        house.withdrawal(asked.id).state == "paid"
    )  # the event is proof; the receipt is not needed
    proxy.heal()
    await lied_to(house, rpc, 3)
    assert house.transactions()[0].state == "done"
    assert await house.payments(wallet.address) == [1_000_000]
