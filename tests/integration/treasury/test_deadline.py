"""What cannot be paid before its deadline: money comes back on proof, and only on proof."""

from app.chain.rpc import open_rpc
from app.embedded.fault_rpc import Fault, FaultRpc
from tests.integration.treasury.house import FUNDS, House, house

__all__ = ["house"]


async def test_a_deny_listed_recipient_waits_until_the_deadline_and_then_has_the_money_back(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000, deadline=house.contracts.chain.now() + 1_800)
    await house.deny(wallet.address)
    await house.settle(3)
    stored = await house.service().one(asked.id, payer=wallet.address)
    assert stored.state == "pending"
    assert house.available(wallet) == (FUNDS - 1_000_000) * 1_000
    [waiting] = house.transactions()
    assert (waiting.state, waiting.nonce) == ("queued", None)
    chain = house.contracts.chain
    chain.forward(1_801)
    assert await house.withdrawals().fail_overdue() == 0  # past its deadline, and not final
    assert house.withdrawal(asked.id).state == "pending"
    chain.finalize()
    # a node that says it was paid, or that nobody else agrees with, proves nothing
    with FaultRpc(chain.url) as proxy:
        async with open_rpc([chain.url, proxy.url]) as two:
            for lie in (
                Fault(kind="result", method="eth_call", value="0x" + "0" * 63 + "1"),
                Fault(kind="result", method="eth_getBlockByNumber", value=another(house)),
            ):
                proxy.add(lie)
                assert await house.withdrawals(rpc=two).fail_overdue() == 0
                assert lie.seen
                proxy.heal()
    assert house.withdrawal(asked.id).state == "pending"
    await house.settle(2)
    failed = house.withdrawal(asked.id)
    assert failed.state == "failed"
    assert failed.reason.startswith("not paid before its deadline, block 0x")
    assert house.available(wallet) == FUNDS * 1_000
    assert [row.state for row in house.transactions()] == ["cancelled"]
    assert await house.payments(wallet.address) == []
    await house.check_books()


async def test_one_that_was_paid_just_before_its_deadline_is_never_given_back(
    house: House,
) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 1_000_000, deadline=house.contracts.chain.now() + 1_800)
    await house.withdrawals().run_once()
    await house.sender().run_once()
    house.contracts.chain.forward(1_801)
    house.contracts.chain.finalize()
    assert await house.withdrawals().fail_overdue() == 0  # mined, and its event not booked yet
    await house.settle(3)
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.payments(wallet.address) == [1_000_000]
    await house.check_books()


def another(house: House) -> object:
    """Another block in the place of the finalized one, as a node writes it."""
    block = house.contracts.chain.ask("eth_getBlockByNumber", "finalized", False)
    assert isinstance(block, dict)
    return {**block, "hash": "0x" + "ab" * 32}
