"""The contracts as deployed, read and called by our own client."""

import pytest

from app.chain import calls
from app.chain.blocks import TransactionReceipt
from app.chain.contracts import AnchorContract, TokenContract, TreasuryContract
from app.chain.errors import MalformedAnswer, RpcRefused
from app.chain.events import TREASURY_EVENTS, ChainEvent, Deposited, ExitRequested
from ledger.authorization import authorization_domain
from ledger.encoding import Address, domain_separator
from tests.chain import (
    ALICE,
    ANCHOR,
    BOB,
    CHAIN_ID,
    EXIT_DELAY,
    OPERATOR,
    Contracts,
    address_of_key,
)


def events_of(receipt: TransactionReceipt, contracts: Contracts) -> list[ChainEvent | None]:
    return [
        TREASURY_EVENTS.decode(log) for log in receipt.logs if log.address == contracts.treasury
    ]


async def test_a_fresh_deployment_says_what_it_was_given(contracts: Contracts) -> None:
    async with contracts.chain.rpc() as rpc:
        treasury = TreasuryContract(rpc, contracts.treasury)
        token = TokenContract(rpc, contracts.token)
        anchor = AnchorContract(rpc, contracts.anchor)
        assert await treasury.token("latest") == contracts.token
        assert await treasury.exit_delay("latest") == EXIT_DELAY
        assert not await treasury.paused("latest")
        expected = authorization_domain(chain_id=CHAIN_ID, treasury=contracts.treasury)
        assert await treasury.domain("latest") == expected
        assert await token.decimals("latest") == 6
        of_token = await token.expected_domain(CHAIN_ID, "latest")
        assert await token.domain_separator("latest") == domain_separator(of_token)
        assert (await anchor.size("latest"), await anchor.root_at(7, "latest")) == (0, None)
        role = await treasury.operator_role("latest")
        assert await treasury.has_role(role, address_of_key(OPERATOR), "latest")
        assert not await treasury.has_role(role, address_of_key(ALICE), "latest")
        assert await anchor.has_role(
            await anchor.anchor_role("latest"), address_of_key(ANCHOR), "latest"
        )


def test_a_deposit_is_one_event_with_its_ref(contracts: Contracts) -> None:
    alice, bob, ref = address_of_key(ALICE), address_of_key(BOB), bytes(range(32))
    receipt = contracts.deposit(ALICE, 5_000_000, to=bob, ref=ref)
    assert events_of(receipt, contracts) == [Deposited(alice, bob, 5_000_000, ref)]


async def test_the_same_read_at_an_older_block_says_what_was_then(contracts: Contracts) -> None:
    async with contracts.chain.rpc() as rpc:
        treasury = TreasuryContract(rpc, contracts.treasury)
        before = await rpc.block("latest")
        assert before is not None
        liability = await treasury.total_liability(before.hash)
        count = await treasury.event_count(before.hash)
        contracts_send = contracts.chain.send_later
        await contracts_send(ALICE, contracts.token, calls.MINT.data(address_of_key(ALICE), 7))
        await contracts_send(ALICE, contracts.token, calls.APPROVE.data(contracts.treasury, 7))
        data = calls.deposit(address_of_key(ALICE), 7, bytes(32))
        receipt = await contracts_send(ALICE, contracts.treasury, data)
        assert await treasury.total_liability(receipt.block_hash) == liability + 7
        assert await treasury.event_count(receipt.block_hash) == count + 1
        assert await treasury.total_liability(before.hash) == liability
        assert await treasury.event_count(before.hash) == count


def test_an_exit_names_when_it_is_ready(contracts: Contracts) -> None:
    contracts.deposit(BOB, 9)
    receipt = contracts.chain.send(BOB, contracts.treasury, calls.request_exit(9))
    (event,) = events_of(receipt, contracts)
    ready_at = contracts.chain.now() + EXIT_DELAY
    assert event == ExitRequested(address_of_key(BOB), 9, ready_at)


def test_a_revert_is_known_by_the_contracts_own_name(contracts: Contracts) -> None:
    with pytest.raises(RpcRefused) as refused:
        contracts.operate(calls.refund(address_of_key(ALICE), 10**12, bytes(31) + b"\1"))
    assert refused.value.name in {"ExceedsRefundable", "ExceedsEarned"}


async def test_an_address_without_code_is_no_contract(contracts: Contracts) -> None:
    nobody = Address("0x" + "ab" * 20)
    async with contracts.chain.rpc() as rpc:
        with pytest.raises(MalformedAnswer, match="eventCount"):
            await TreasuryContract(rpc, nobody).event_count("latest")
