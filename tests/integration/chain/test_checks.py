"""Start-up checks on a real chain: whatever contradicts the settings is named, with both values."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from app.chain import checks
from app.chain.abi import Function
from app.chain.checks import ChainGuard, ChainMismatch, ChainTerms, check_chain
from app.chain.deploy import DeployTerms, deploy
from app.chain.endpoint import RpcLimits
from app.chain.errors import RpcUnavailable
from app.chain.keys import KeystoreKey
from app.chain.rpc import CallRequest, ChainRpc, open_rpc
from app.embedded.anvil import AnvilOptions, EmbeddedAnvil
from app.embedded.fault_rpc import Fault, FaultRpc
from ledger.encoding import Address
from tests.chain import ADMIN, CHAIN_ID, EXIT_DELAY, TEST_KEYS, Contracts, address_of_key

QUICK = RpcLimits(connect_seconds=1, call_seconds=2)
NOBODY = Address("0x" + "ab" * 20)


@pytest.fixture
def terms(contracts: Contracts) -> ChainTerms:
    return ChainTerms(
        chain_id=CHAIN_ID,
        token=contracts.token,
        treasury=contracts.treasury,
        anchor=contracts.anchor,
        exit_delay_above=EXIT_DELAY - 1,
    )


@pytest.fixture
def proxy(contracts: Contracts) -> Iterator[FaultRpc]:
    with FaultRpc(contracts.chain.url) as running:
        yield running


@pytest.fixture
async def rpc(proxy: FaultRpc) -> AsyncIterator[ChainRpc]:
    async with open_rpc([proxy.url], QUICK, expected_chain_id=CHAIN_ID) as found:
        yield found


async def refusal(rpc: ChainRpc, terms: ChainTerms) -> ChainMismatch:
    with pytest.raises(ChainMismatch) as refused:
        await check_chain(rpc, terms)
    assert refused.value.next_step
    assert refused.value.expected in str(refused.value)
    assert refused.value.found in str(refused.value)
    return refused.value


def moved(terms: ChainTerms, name: str, address: Address) -> ChainTerms:
    addresses = {"token": terms.token, "treasury": terms.treasury, "anchor": terms.anchor}
    addresses[name] = address
    return ChainTerms(chain_id=terms.chain_id, exit_delay_above=terms.exit_delay_above, **addresses)


async def test_right_settings_pass_and_every_contract_was_asked(
    rpc: ChainRpc, terms: ChainTerms, proxy: FaultRpc
) -> None:
    await check_chain(rpc, terms)
    assert proxy.count("eth_chainId") >= 1
    assert proxy.count("eth_getCode") == 3
    assert proxy.count("eth_call") >= 5, "decimals, both domains, the treasury's token and delay"


async def test_another_chain_is_refused_though_only_one_of_the_urls_is_of_it(
    contracts: Contracts, terms: ChainTerms, proxy: FaultRpc
) -> None:
    with EmbeddedAnvil.start(AnvilOptions(chain_id=1_337)) as other:
        async with open_rpc([contracts.chain.url, other.url], expected_chain_id=CHAIN_ID) as rpc:
            refused = await refusal(rpc, terms)
            assert isinstance(refused, checks.ChainIdDiffers)
            assert refused.found == "1337 at rpc-1 (127.0.0.1)"
        async with open_rpc([other.url, proxy.url], expected_chain_id=CHAIN_ID) as rpc:
            head = await rpc.block("latest")  # passed over, not asked
            assert head is not None
            assert head.number == contracts.chain.height()
            proxy.add(Fault(kind="http-status"))
            with pytest.raises(RpcUnavailable, match="chain 1337, not 31337"):
                await rpc.block("latest")
            with pytest.raises(RpcUnavailable, match="chain 1337, not 31337"):
                await rpc.send_raw(b"\x02")


@pytest.mark.parametrize("name", ["token", "treasury", "anchor"])
async def test_missing_code_is_refused(rpc: ChainRpc, terms: ChainTerms, name: str) -> None:
    refused = await refusal(rpc, moved(terms, name, NOBODY))
    assert isinstance(refused, checks.ContractMissing)
    assert NOBODY in str(refused)


@pytest.mark.parametrize(("name", "other"), [("token", "anchor"), ("treasury", "token")])
async def test_another_contract_in_its_place_is_refused(
    rpc: ChainRpc, terms: ChainTerms, name: str, other: str
) -> None:
    refused = await refusal(rpc, moved(terms, name, getattr(terms, other)))
    assert isinstance(refused, checks.ContractMissing)
    refused = await refusal(rpc, replace(terms, anchor=terms.token))
    assert isinstance(refused, checks.ContractMissing)


async def test_a_treasury_of_another_token_is_refused(rpc: ChainRpc, terms: ChainTerms) -> None:
    again = DeployTerms(
        token=None,
        operator=address_of_key(1),
        guardian=address_of_key(2),
        anchor=address_of_key(3),
        admin_delay=0,
        exit_delay=EXIT_DELAY,
        payout_day_limit=1,
    )
    second = await deploy(rpc, KeystoreKey(TEST_KEYS[ADMIN]), again)
    refused = await refusal(rpc, replace(terms, treasury=second.treasury))
    assert isinstance(refused, checks.TreasuryTokenDiffers)
    assert (refused.expected, refused.found) == (terms.token, second.token)


async def test_a_token_whose_domain_separator_differs_is_refused(
    rpc: ChainRpc, terms: ChainTerms, proxy: FaultRpc
) -> None:
    proxy.add(Fault(kind="result", method="eth_call", skip=3, count=1, value="0x" + "11" * 32))
    refused = await refusal(rpc, terms)
    assert isinstance(refused, checks.TokenDomainDiffers)
    assert refused.found == "0x" + "11" * 32
    assert "'USD Coin', '2'" in refused.expected


async def test_a_token_of_another_scale_is_refused(
    rpc: ChainRpc, terms: ChainTerms, proxy: FaultRpc
) -> None:
    proxy.add(Fault(kind="result", method="eth_call", count=1, value=f"0x{18:064x}"))
    refused = await refusal(rpc, terms)
    assert isinstance(refused, checks.TokenScaleDiffers)
    assert (refused.expected, refused.found) == ("6", "18")


async def test_an_exit_that_ripens_under_a_running_job_is_refused(
    rpc: ChainRpc, terms: ChainTerms
) -> None:
    refused = await refusal(rpc, replace(terms, exit_delay_above=EXIT_DELAY))
    assert isinstance(refused, checks.ExitDelayTooShort)


async def test_a_signature_for_another_chain_would_fail_so_the_domain_is_refused(
    rpc: ChainRpc, terms: ChainTerms, proxy: FaultRpc
) -> None:
    answer = await rpc.call(_domain_call(terms), "latest")
    wrong = answer.replace(CHAIN_ID.to_bytes(32), (1).to_bytes(32))
    proxy.add(
        Fault(kind="result", method="eth_call", skip=5, count=1, value="0x" + wrong.hex()),
    )
    refused = await refusal(rpc, terms)
    assert isinstance(refused, checks.TreasuryDomainDiffers)


def _domain_call(terms: ChainTerms) -> CallRequest:
    return CallRequest(to=terms.treasury, data=Function("eip712Domain()").data())


async def test_without_a_node_nothing_is_known_and_the_guard_asks_until_it_is(
    rpc: ChainRpc, terms: ChainTerms, proxy: FaultRpc
) -> None:
    proxy.add(Fault(kind="http-status"))
    with pytest.raises(RpcUnavailable):
        await check_chain(rpc, terms)
    guard = ChainGuard(rpc, terms, retry_seconds=0.01)
    await guard.check()
    before = guard.checked
    running = asyncio.create_task(guard.run())
    proxy.heal()
    async with asyncio.timeout(10):
        while not guard.checked:  # noqa: ASYNC110  # it has no event: nobody but a test waits
            await asyncio.sleep(0.01)
    assert (before, running.done()) == (False, False)
    running.cancel()


async def test_a_guard_that_learns_of_a_mismatch_ends_with_it(
    rpc: ChainRpc, terms: ChainTerms
) -> None:
    guard = ChainGuard(rpc, replace(terms, token=NOBODY), retry_seconds=0.01)
    async with asyncio.timeout(10):
        with pytest.raises(ChainMismatch):
            await guard.run()
