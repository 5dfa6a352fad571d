"""Nodes that lag, hide and fail: the watcher loses nothing, books nothing twice, passes nothing."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta

import pytest
from sqlalchemy import event

from app.chain.calls import publish
from app.chain.endpoint import RpcLimits
from app.chain.errors import ChainError
from app.chain.rpc import ChainRpc, open_rpc
from app.embedded.anvil import AnvilOptions, EmbeddedAnvil
from app.embedded.fault_rpc import Fault, FaultRpc
from app.kit.clock import utc_now
from app.treasury.errors import ChainMoved, EndpointsDisagree, TreasuryError
from app.treasury.watcher import Watcher
from ledger.hashing import keccak256
from tests.chain import ANCHOR, CHAIN_ID
from tests.integration.treasury.watched import Wallet, Watched, has, house, watched

__all__ = ["house", "watched"]

QUICK = RpcLimits(call_seconds=0.3)
REAL, FORGED = 1_234_567, 4_999_999
LOGS, BLOCK = "eth_getLogs", "eth_getBlockByNumber"


@pytest.fixture
async def lying(watched: Watched) -> AsyncIterator[FaultRpc]:
    """A node in front of the real one; the watcher believes it alone."""
    with FaultRpc(watched.chain.url) as proxy:
        async with open_rpc([proxy.url], QUICK) as rpc:
            watched.watcher = watched.new_watcher(rpc)
            yield proxy


@pytest.fixture
async def second(watched: Watched, lying: FaultRpc) -> AsyncIterator[ChainRpc]:
    """The lying node first and an honest one after it."""
    async with open_rpc([lying.url, watched.chain.url], QUICK) as rpc:
        watched.watcher = watched.new_watcher(rpc)
        yield rpc


async def try_to_look(watcher: Watcher) -> bool:
    """One round, that may have to be given up."""
    try:
        return await watcher.run_once()
    except (ChainError, TreasuryError):
        return False


async def some_money(watched: Watched) -> Wallet:
    """A wallet with 3 tokens, final and booked."""
    wallet = await watched.wallet()
    await wallet.pay_in(3_000_000)
    await watched.finality()
    assert watched.money(wallet) == has(3_000_000)
    return wallet


FAULTS = [
    Fault(kind="http-status", count=7),
    Fault(kind="rpc-error", count=7),
    Fault(kind="cut", count=7),
    Fault(kind="garbage", count=7),
    Fault(kind="other-id", count=7),
    Fault(kind="hang", method=LOGS, count=2),
    Fault(kind="rpc-error", method=LOGS, count=3),
    Fault(kind="empty", method=LOGS, count=5),
    Fault(kind="empty", method=LOGS, count=1),
    Fault(kind="empty", method=LOGS, count=1, skip=1),
    Fault(kind="null", method=BLOCK, count=9),
    Fault(kind="null", method=BLOCK, count=1, skip=3),
    Fault(kind="frozen", method=BLOCK, count=30),
    Fault(kind="frozen", count=40),
    Fault(kind="rpc-error", method="eth_call", count=8),
    Fault(kind="result", method="eth_call", count=8, value="0x"),
    Fault(kind="result", method="eth_call", count=8, value="0x" + "00" * 32),
    Fault(kind="null", method="eth_getBlockByHash", count=20),
    Fault(kind="null", method="eth_getTransactionReceipt", count=20),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.kind}-{f.method}-{f.count}-{f.skip}")
async def test_whatever_one_node_says_everything_is_booked_once_in_the_end(
    watched: Watched, lying: FaultRpc, fault: Fault
) -> None:
    wallet = await some_money(watched)
    lying.add(Fault(kind=fault.kind, method=fault.method, count=fault.count, skip=fault.skip))
    lying.faults[-1].value = fault.value
    last = watched.cursor() or 0
    for _ in range(4):
        await wallet.pay_in(1_000_000)
        await wallet.transfer(100_000)
        await try_to_look(watched.watcher)
        assert (watched.cursor() or 0) >= last
        last = watched.cursor() or 0
    lying.heal()
    watched.chain.finalize()
    for _ in range(3):
        await try_to_look(watched.watcher)
    assert watched.money(wallet) == has(7_000_000)
    assert watched.books.net("suspense") == 400_000_000
    undone = {kind for kind, state in watched.events() if state != "booked"}
    assert undone <= {"plain-transfer"}  # of deposits that were hidden
    assert ("plain-transfer", "seen") not in watched.events()
    assert watched.cursor() == watched.chain.height() - 2
    await watched.check()


@pytest.mark.parametrize("hidden", ["all", "the treasury's", "the token's"])
async def test_the_cursor_never_passes_a_hidden_event(
    watched: Watched, lying: FaultRpc, hidden: str
) -> None:
    wallet = await some_money(watched)
    before = watched.cursor()
    lying.add(
        *{
            "all": [Fault(kind="empty", method=LOGS)],
            "the treasury's": [Fault(kind="empty", method=LOGS, count=1)],
            "the token's": [Fault(kind="empty", method=LOGS, skip=1, count=1)],
        }[hidden]
    )
    await (wallet.transfer(500) if hidden == "the token's" else wallet.pay_in(2_000_000))
    watched.chain.finalize()
    assert not await watched.look()
    assert watched.cursor() == before
    assert watched.watcher.health.incomplete_rounds == 1
    assert watched.watcher.health.why
    lying.heal()
    assert await watched.look()
    assert watched.watcher.health.incomplete_rounds == 0
    assert watched.cursor() == watched.chain.height() - 2
    await watched.check()


async def test_an_anchor_that_is_hidden_stops_the_cursor_and_is_kept_when_it_is_shown(
    watched: Watched, lying: FaultRpc
) -> None:
    await some_money(watched)
    before, root = watched.cursor(), keccak256(b"a log of one entry")
    await watched.house.act(ANCHOR, watched.house.contracts.anchor, publish(1, root, []))
    watched.chain.finalize()
    lying.add(Fault(kind="empty", method=LOGS, count=1))
    assert not await watched.look()
    assert watched.cursor() == before
    assert watched.watcher.health.why.startswith("the last stored anchor is of size 0")
    assert await watched.look()
    [row] = watched.books.rows("SELECT size, root FROM offpeak.anchor")
    assert (row.size, bytes(row.root)) == (1, root)
    await watched.check()


async def test_while_an_event_is_hidden_nothing_after_it_is_credited_at_safe(
    watched: Watched, lying: FaultRpc
) -> None:
    wallet = await some_money(watched)
    watched.watcher = watched.new_watcher(watched.watcher.rpc, range_blocks=1)
    await wallet.pay_in(1_000_000)
    await wallet.pay_in(2_000_000)
    watched.chain.mine()
    lying.add(Fault(kind="empty", method=LOGS, skip=4, count=1))  # the first deposit's block
    assert not await watched.look()
    assert watched.events() == [
        ("deposited", "booked"),
        ("plain-transfer", "seen"),  # what the hidden deposit moved
        ("deposited", "seen"),
    ]
    assert watched.money(wallet) == has(3_000_000)
    await watched.look()
    assert watched.money(wallet) == has(6_000_000)
    await watched.finality()
    await watched.check()


async def test_what_is_not_shown_any_more_is_not_gone(watched: Watched, lying: FaultRpc) -> None:
    wallet = await some_money(watched)
    await wallet.pay_in(2_000_000)
    watched.chain.mine()
    await watched.look()
    assert watched.money(wallet) == has(5_000_000)
    lying.add(Fault(kind="empty", method=LOGS))
    await watched.look()
    assert watched.watcher.health.unproven == 1
    lying.heal()
    lying.add(Fault(kind="null", method=BLOCK, skip=3))
    with pytest.raises((ChainError, TreasuryError)):
        await watched.look()
    assert watched.money(wallet) == has(5_000_000)
    lying.heal()
    await watched.finality()
    assert watched.watcher.health.unproven == 0
    await watched.check()


@pytest.mark.usefixtures("second")
async def test_a_block_that_one_endpoint_still_shows_is_not_gone(
    watched: Watched, lying: FaultRpc
) -> None:
    wallet = await some_money(watched)
    await wallet.pay_in(2_000_000)
    watched.chain.mine()
    lying.add(Fault(kind="frozen", method=BLOCK))
    await watched.look()
    number = watched.chain.height() - 1
    await watched.watcher.rpc.by_url()[0].block(number)  # from now on it shows this one for ever
    assert watched.money(wallet) == has(5_000_000)
    watched.reorg(2)
    watched.chain.mine()
    for _ in range(4):
        await try_to_look(watched.watcher)
    assert watched.money(wallet) == has(5_000_000)
    lying.heal()
    await watched.look()
    assert watched.money(wallet) == has(3_000_000)
    await watched.check()


async def test_endpoints_of_two_forks_stop_the_round(watched: Watched) -> None:
    await some_money(watched)
    with EmbeddedAnvil.start(AnvilOptions(chain_id=CHAIN_ID)) as other:
        other.ask("anvil_mine", hex(watched.chain.height()))
        async with open_rpc([watched.chain.url, other.url]) as rpc:
            watched.watcher = watched.new_watcher(rpc)
            for _ in range(2):
                with pytest.raises(EndpointsDisagree):
                    await watched.look()
    assert watched.watcher.health.failed_rounds == 2


@pytest.mark.usefixtures("second")
async def test_a_stale_endpoint_or_one_that_hides_is_passed_over_for_the_other(
    watched: Watched, lying: FaultRpc
) -> None:
    wallet = await some_money(watched)
    lying.add(Fault(kind="frozen"))
    await try_to_look(watched.watcher)
    watched.chain.forward(3_600)
    watched.watcher.clock = lambda: utc_now() + timedelta(hours=1)
    await wallet.pay_in(2_000_000)
    await watched.finality()
    assert watched.money(wallet) == has(5_000_000)
    lying.heal()
    lying.add(Fault(kind="empty", method=LOGS))
    await wallet.pay_in(2_000_000)
    watched.chain.finalize()
    for _ in range(2):
        await watched.look()
    assert watched.money(wallet) == has(7_000_000)
    await watched.check()


class Forger(FaultRpc):
    """A node that tells one number as another one, wherever it stands."""

    def forward(self, request: Mapping[str, object]) -> dict[str, object]:
        real, forged = (f"{amount:064x}" for amount in (REAL, FORGED))
        answer: dict[str, object] = json.loads(
            json.dumps(super().forward(request)).replace(real, forged)
        )
        return answer


@pytest.mark.parametrize("final", [False, True])
async def test_a_deposit_that_one_endpoint_makes_larger_is_not_credited(
    watched: Watched, *, final: bool
) -> None:
    wallet = await watched.wallet()
    with Forger(watched.chain.url) as forger:
        async with open_rpc([forger.url, watched.chain.url], QUICK) as rpc:
            watched.watcher = watched.new_watcher(rpc)
            await wallet.pay_in(REAL)
            watched.chain.mine(2)
            if final:
                watched.chain.finalize()
            for _ in range(4):
                await try_to_look(watched.watcher)
    assert [state for _, state in watched.events()] != ["booked"]
    watched.watcher = watched.new_watcher()  # without the liar
    watched.chain.finalize()
    for _ in range(2):
        await try_to_look(watched.watcher)
    assert watched.money(wallet) == has(REAL)
    await watched.check()


async def test_a_reorganization_between_two_reads_is_noticed(
    watched: Watched, lying: FaultRpc
) -> None:
    wallet = await some_money(watched)
    await wallet.pay_in(2_000_000)
    old = watched.chain.ask("eth_getBlockByNumber", hex(watched.chain.height()), False)
    watched.chain.reorg(1)
    # the end of the range is of the old chain before the logs, and of the new one after them
    lying.add(Fault(kind="result", method=BLOCK, skip=4, count=1, value=old))
    with pytest.raises(ChainMoved):
        await watched.look()
    await watched.finality()
    assert watched.money(wallet) == has(3_000_000)
    await watched.check()


class Crash(Exception):
    """The process ends here."""


@pytest.mark.parametrize("fate", ["stays", "is reorganized away"])
async def test_a_crash_after_any_commit_resumes(watched: Watched, fate: str) -> None:
    """Round by round, each cut off one statement later than the last."""
    first, leaving = await watched.wallet(), await watched.wallet()
    await leaving.pay_in(4_000_000)
    await watched.finality()
    engine = watched.house.database._statements.sync_engine
    left, crashes = 0, 0

    def crash(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash

    async def every_round_cut_off() -> None:
        nonlocal left, crashes
        for statements in range(60):
            left = statements
            event.listen(engine, "after_cursor_execute", crash)
            try:
                done = await watched.new_watcher().run_once()
            except Crash:
                crashes += 1
                done = False
            finally:
                event.remove(engine, "after_cursor_execute", crash)
            if done:
                return
        raise AssertionError("never ends")

    deposit = await first.pay_in(5_000_000)
    await first.transfer(1_000_000)
    await leaving.request_exit(1_000_000)
    await every_round_cut_off()
    if fate != "stays":
        watched.reorg(3)
        await every_round_cut_off()
    else:
        watched.chain.finalize()
        await every_round_cut_off()
    watched.chain.finalize()
    await every_round_cut_off()
    assert crashes > 10
    assert deposit.hash
    if fate == "stays":
        assert watched.money(first) == has(5_000_000)
        assert watched.money(leaving) == has(3_000_000, aside=1_000_000, exiting=1)
        assert watched.books.net("suspense") == 1_000_000_000
    else:
        assert watched.money(leaving) == has(4_000_000)
        assert watched.books.net("suspense") == 0
    await watched.check()


async def test_a_round_with_nothing_new_asks_little(watched: Watched, lying: FaultRpc) -> None:
    await some_money(watched)
    await watched.look()
    before = len(lying.calls)
    assert await watched.look()
    assert len(lying.calls) - before <= 8
    watched.chain.mine()
    before = len(lying.calls)
    assert await watched.look()
    assert len(lying.calls) - before <= 13


async def test_of_two_watchers_at_once_one_acts(watched: Watched) -> None:
    wallet = await some_money(watched)
    async with watched.house.database.locked("offpeak.watcher:31337") as held:
        assert held is not None
        assert not await watched.look()
    assert await watched.look()
    assert watched.money(wallet) == has(3_000_000)
