"""Contract wallets that cost us gas or stop nodes: they hold up nothing but their own money."""

import secrets
from dataclasses import dataclass

import psycopg

from app.chain.calls import APPROVE, MINT, deposit
from app.chain.rpc import open_rpc
from app.embedded.fault_rpc import Fault, FaultRpc
from app.kit.clock import from_unix_seconds
from app.treasury.withdrawal_repository import REVERTS_A_DAY, Request, WithdrawalRepository
from ledger.encoding import Address
from ledger.signing import SigningKey
from tests.chain import ADMIN, address_of_key
from tests.integration.treasury.house import House, house, ids

__all__ = ["house"]

YES = bytes.fromhex("631626ba7e60e01b60005260206000f3")
"""Code that confirms whatever it is asked (ERC-1271)."""
BURN = bytes.fromhex("fe")
"""Code that uses up all the gas it gets."""
TIMED_OUT = {"code": -32000, "message": "execution aborted (timeout = 5s)"}

PRUNED = {"code": -32000, "message": "missing trie node"}


@dataclass
class Hostile:
    """A contract wallet without a key, with money."""

    house: House
    address: Address

    def becomes(self, code: bytes) -> None:
        self.house.contracts.chain.ask("anvil_setCode", self.address, "0x" + code.hex())

    async def ask(self, amount: int) -> None:
        """Ask for a withdrawal, as the gateway stores it when the contract has confirmed it."""
        nobody = SigningKey(secrets.token_bytes(32))
        message = self.house.message(nobody, amount, payer=self.address)
        request = Request(
            id=ids().new(),
            digest=message.digest(self.house.domain),
            message=message,
            signature=b"hostile",
            fee=0,
            deadline=from_unix_seconds(message.deadline),
        )
        async with self.house.app.transaction() as tx:
            found = await WithdrawalRepository(tx).request(
                request, asset=self.house.contracts.token
            )
        assert found.code == "ok"


async def hostile_wallet(house: House, amount: int = 50_000_000) -> Hostile:
    made = Hostile(house, Address("0x" + secrets.token_hex(20)))
    made.becomes(YES)
    place = house.contracts
    await house.act(ADMIN, place.token, MINT.data(address_of_key(ADMIN), amount))
    await house.act(ADMIN, place.token, APPROVE.data(place.treasury, amount))
    await house.act(ADMIN, place.treasury, deposit(made.address, amount, bytes(32)))
    house.contracts.chain.finalize()
    await house.book()
    return made


async def test_a_wallet_whose_code_no_node_can_run_holds_up_nobody_else(house: House) -> None:
    wallet, hostile = await house.new_wallet(), await hostile_wallet(house)
    await hostile.ask(1_000_000)
    asked = await house.ask(wallet, 2_000_000)
    with FaultRpc(house.contracts.chain.url) as proxy:
        async with open_rpc([proxy.url]) as rpc:
            await house.withdrawals().run_once()
            for _ in range(2):  # whatever its first question is
                proxy.add(Fault(kind="rpc-error", method="eth_call", count=1, value=TIMED_OUT))
                await house.sender(rpc=rpc).run_once()
                proxy.heal()
                await house.sender(rpc=rpc).run_once()
    await house.settle(3)
    assert house.withdrawal(asked.id).state == "paid"
    first = house.transactions()[0]
    assert first.tries >= 1
    await house.check_books()


async def test_a_wallet_that_burns_gas_is_not_simulated_with_more_than_it_may_cost(
    house: House,
) -> None:
    hostile = await hostile_wallet(house)
    await hostile.ask(1_000_000)
    hostile.becomes(BURN)
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 2_000_000)
    await house.settle(3)
    assert house.withdrawal(asked.id).state == "paid"
    assert [row.state for row in house.transactions()] == ["queued", "done"]


async def test_a_revert_whose_state_no_node_has_any_more_is_ended_all_the_same(
    house: House,
) -> None:
    hostile = await hostile_wallet(house)
    await revert_once(house, hostile, ask=True)
    with FaultRpc(house.contracts.chain.url) as proxy:
        proxy.add(Fault(kind="rpc-error", method="eth_call", value=PRUNED))
        async with open_rpc([proxy.url]) as rpc:
            await house.sender(rpc=rpc).run_once()
            await house.sender(rpc=rpc).run_once()
    [row] = house.transactions()
    assert row.state == "reverted"
    assert "by its state then" in row.last_error


async def test_a_wallet_that_agrees_only_when_it_is_asked_costs_us_little(house: House) -> None:
    hostile = await hostile_wallet(house)
    for turn in range(REVERTS_A_DAY):
        await revert_once(house, hostile, ask=turn == 0)
        await house.sender().run_once()
        await house.sender().run_once()
        with psycopg.connect(house.url, autocommit=True) as connection:
            connection.execute(
                "UPDATE offpeak.chain_transaction SET ended_at = ended_at - interval '1 h'"
            )
    assert [row.state for row in house.transactions()] == ["reverted"] * REVERTS_A_DAY
    hostile.becomes(YES)
    await hostile.ask(2_000_000)
    await house.settle(2)
    assert len(house.transactions()) == REVERTS_A_DAY
    with psycopg.connect(house.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE offpeak.chain_transaction SET ended_at = ended_at - interval '1 d'"
        )
    await house.settle(3)
    assert sorted(await house.payments(hostile.address)) == [1_000_000, 2_000_000]
    await house.check_books()


async def revert_once(house: House, hostile: Hostile, *, ask: bool) -> None:
    """Have a withdrawal of the wallet sent, mined and reverted, in a final block."""
    chain = house.contracts.chain
    hostile.becomes(YES)
    if ask:
        await hostile.ask(1_000_000)
    chain.pause_mining()
    assert await house.withdrawals().run_once() == 1
    assert (await house.sender().run_once()).signed == 1
    hostile.becomes(BURN)
    chain.mine()
    chain.resume_mining()
    chain.finalize()
