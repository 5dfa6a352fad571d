"""Contract wallets on a real chain: what counts as their signature, and what never does."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import psycopg
import pytest

from app.chain.artifacts import load_artifact
from app.chain.endpoint import RpcLimits
from app.chain.rpc import ChainRpc, open_rpc
from app.db.engine import Database, open_database
from app.embedded.fault_rpc import Fault, FaultRpc
from app.wallets.contract_wallets import CheckLimits, ContractWallets
from app.wallets.errors import (
    NotConfirmed,
    SignatureNotCheckable,
    TooManySignatureChecks,
    WrongSigner,
)
from app.wallets.probe import WRAPPED, ContractProbe, Question
from app.wallets.signatures import WalletSignatures, is_plain
from ledger.errors import BadSignature
from ledger.onchain import MAX_CONTRACT_SIGNATURE, ContractMethod
from ledger.signing import SigningKey
from tests.chain import CHAIN_ID, TestChain, chain
from tests.integration.wallets.smart import Mode, coming, create, delegate, deployed, new_key

__all__ = ["chain"]

CODE = load_artifact("SignatureProbe").bytecode
QUICK = RpcLimits(connect_seconds=1, call_seconds=1)
DIGEST = secrets.token_bytes(32)


@pytest.fixture
def first(chain: TestChain) -> Iterator[FaultRpc]:
    with FaultRpc(chain.url) as proxy:
        yield proxy


@pytest.fixture
def second(chain: TestChain) -> Iterator[FaultRpc]:
    with FaultRpc(chain.url) as proxy:
        yield proxy


@dataclass
class Desk:
    """Checks signatures over the proxies; its clock stands still until it is moved."""

    database: Database
    rpc: ChainRpc
    limits: CheckLimits = field(default_factory=CheckLimits)
    now: float = 1_000.0
    contracts: ContractWallets = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self, *, max_age: int | None = None, **limits: float) -> None:
        """Forget all, and begin with other limits."""
        probe = ContractProbe(self.rpc, CODE, max_age=max_age)
        self.contracts = ContractWallets(
            probe,
            self.database,
            monotonic=lambda: self.now,
            limits=CheckLimits(**{"wallet_burst": 1_000, "seconds": 3.0, **limits}),  # type: ignore[arg-type]
        )

    async def check(self, signature: bytes, signer: str, digest: bytes = DIGEST) -> None:
        await WalletSignatures(self.contracts).check(digest, signature, signer=signer)  # type: ignore[arg-type]


@pytest.fixture
async def desk(first: FaultRpc, database_url: str) -> AsyncIterator[Desk]:
    database = open_database(database_url)
    async with open_rpc([first.url], QUICK, expected_chain_id=CHAIN_ID) as rpc:
        yield Desk(database, rpc)
    await database.dispose()


@pytest.fixture
async def pair(first: FaultRpc, second: FaultRpc, database_url: str) -> AsyncIterator[Desk]:
    database = open_database(database_url)
    async with open_rpc([first.url, second.url], QUICK, expected_chain_id=CHAIN_ID) as rpc:
        yield Desk(database, rpc)
    await database.dispose()


async def test_what_the_owner_signed_counts_for_the_wallet_and_nothing_else_does(
    desk: Desk, chain: TestChain
) -> None:
    wallet = deployed(chain)
    good = wallet.owner.sign(DIGEST)
    await desk.check(good, wallet.address)
    with pytest.raises(WrongSigner):
        await desk.check(good, wallet.address, digest=bytes(32))
    with pytest.raises(WrongSigner):
        await desk.check(new_key().sign(DIGEST), wallet.address)
    with pytest.raises(WrongSigner):
        await desk.check(good, deployed(chain).address)
    with pytest.raises(NotConfirmed):
        await desk.check(good + b"\0", wallet.address)
    with pytest.raises(NotConfirmed):
        await desk.check(b"", wallet.address)
    with pytest.raises(WrongSigner):
        await desk.check(good, new_key().address)


@pytest.mark.parametrize("mode", [Mode.REFUSING, Mode.REVERTING, Mode.EXPENSIVE, Mode.SHORT])
async def test_a_wallet_that_does_not_say_yes_says_no(
    desk: Desk, chain: TestChain, mode: Mode
) -> None:
    wallet = deployed(chain)
    wallet.behave(mode)
    with pytest.raises(WrongSigner):
        await desk.check(wallet.owner.sign(DIGEST), wallet.address)
    with pytest.raises(NotConfirmed):
        await desk.check(b"\1" * 200, wallet.address)


async def test_what_stands_behind_a_yes_does_not_matter(desk: Desk, chain: TestChain) -> None:
    wallet = deployed(chain)
    wallet.behave(Mode.LONG)
    await desk.check(wallet.owner.sign(DIGEST), wallet.address)
    wallet.behave(Mode.TRUSTING)
    for signature in (b"\1" * MAX_CONTRACT_SIGNATURE, b"\2" * 65, b""):
        await desk.check(signature, wallet.address)
    with pytest.raises(BadSignature):
        await desk.check(b"\1" * (MAX_CONTRACT_SIGNATURE + 1), wallet.address)


async def test_a_wallet_whose_owner_is_a_wallet(desk: Desk, chain: TestChain) -> None:
    inner = deployed(chain)
    address = create(chain, "SmartWallet", ["address"], inner.address)
    await desk.check(inner.owner.sign(DIGEST), address)
    inner.behave(Mode.REVERTING)
    desk.start()
    with pytest.raises(WrongSigner):
        await desk.check(inner.owner.sign(DIGEST), address)


async def test_a_wallet_that_is_not_there_yet_signs_with_its_factory_call(
    desk: Desk, chain: TestChain
) -> None:
    wallet = coming(chain)
    signature = wallet.wrapped(wallet.owner.sign(DIGEST))
    question = Question(wallet.address, DIGEST, signature)
    before = chain.height()
    seen = await desk.contracts.confirmed(question)
    assert seen is not None
    assert (seen.method, seen.block_number) == (ContractMethod.COUNTERFACTUAL, before)
    assert chain.ask("eth_getCode", wallet.address, "latest") == "0x"
    with pytest.raises(NotConfirmed):
        await desk.check(wallet.wrapped(new_key().sign(DIGEST)), wallet.address)
    with pytest.raises(NotConfirmed):
        await desk.check(signature, coming(chain).address)
    with pytest.raises(WrongSigner):
        await desk.check(wallet.owner.sign(DIGEST), wallet.address)
    for broken in (WRAPPED, b"\xff" * 96 + WRAPPED, signature[32:], signature[:-96] + WRAPPED):
        with pytest.raises(NotConfirmed):
            await desk.check(broken, wallet.address)
    wallet.deploy()
    desk.start()
    seen = await desk.contracts.confirmed(question)
    assert seen is not None
    assert seen.method is ContractMethod.DEPLOYED


async def test_an_account_with_code_signs_with_its_key_and_no_node_is_asked(
    desk: Desk, chain: TestChain, first: FaultRpc
) -> None:
    private = secrets.token_bytes(32)
    key, wallet = SigningKey(private), deployed(chain)
    delegate(chain, key, private, wallet.address)
    await desk.check(key.sign(DIGEST), key.address)
    assert is_plain(DIGEST, key.sign(DIGEST), signer=key.address)
    assert first.calls == []
    await desk.check(wallet.owner.sign(DIGEST), key.address)  # its code's owner, by ERC-1271
    assert first.count("eth_call") == 1


async def test_a_revoked_owner_is_refused_three_seconds_later_at_most(
    desk: Desk, chain: TestChain, first: FaultRpc
) -> None:
    wallet = deployed(chain)
    signature = wallet.owner.sign(DIGEST)
    await desk.check(signature, wallet.address)
    wallet.behave(Mode.REFUSING)
    desk.now += 2.9
    await desk.check(signature, wallet.address)
    assert first.count("eth_call") == 1
    desk.now += 0.1
    with pytest.raises(WrongSigner):
        await desk.check(signature, wallet.address)
    wallet.behave(Mode.HONEST)
    desk.now += 0.9
    with pytest.raises(WrongSigner):
        await desk.check(signature, wallet.address)
    desk.now += 0.1
    await desk.check(signature, wallet.address)


async def test_a_crowd_with_one_signature_asks_once(
    desk: Desk, chain: TestChain, first: FaultRpc
) -> None:
    wallet = deployed(chain)
    signature = wallet.owner.sign(DIGEST)
    await asyncio.gather(*(desk.check(signature, wallet.address) for _ in range(50)))
    assert first.count("eth_call") == 1


async def test_a_wallet_that_asks_too_often_is_told_when_and_others_are_not(
    desk: Desk, chain: TestChain
) -> None:
    desk.start(wallet_burst=3, wallet_per_second=0.5)
    wallet, other = deployed(chain), deployed(chain)
    for number in range(3):
        with pytest.raises(NotConfirmed):
            await desk.check(bytes([number]), wallet.address)
    with pytest.raises(TooManySignatureChecks) as refused:
        await desk.check(b"\7", wallet.address)
    assert refused.value.retry_after_seconds == 2
    await desk.check(other.owner.sign(DIGEST), other.address)
    desk.now += 2
    await desk.check(wallet.owner.sign(DIGEST), wallet.address)


async def test_all_wallets_together_ask_only_so_often(desk: Desk, chain: TestChain) -> None:
    desk.start(all_burst=1, all_per_second=1.0)
    wallet, other = deployed(chain), deployed(chain)
    await desk.check(wallet.owner.sign(DIGEST), wallet.address)
    with pytest.raises(SignatureNotCheckable):
        await desk.check(other.owner.sign(DIGEST), other.address)
    await desk.check(wallet.owner.sign(DIGEST), wallet.address)  # remembered
    desk.now += 1
    await desk.check(other.owner.sign(DIGEST), other.address)


BROKEN = [
    Fault(kind="http-status"),
    Fault(kind="http-status", value=429),
    Fault(kind="rpc-error", value={"code": -32000, "message": "out of gas"}),
    Fault(kind="cut"),
    Fault(kind="hang"),
    Fault(kind="garbage"),
    Fault(kind="null"),
    Fault(kind="null", method="eth_call"),
    Fault(kind="result", method="eth_call", value="0x"),
    Fault(kind="result", method="eth_call", value="0x02"),
    Fault(kind="result", method="eth_call", value="0x" + "01" * 32),
    Fault(kind="result", method="eth_chainId", value="0x1"),
    Fault(kind="null", method="eth_getBlockByNumber"),
]


@pytest.mark.parametrize("fault", BROKEN, ids=lambda fault: f"{fault.kind}-{fault.method}")
async def test_a_node_that_fails_is_never_a_yes_and_never_a_no(
    desk: Desk, chain: TestChain, first: FaultRpc, fault: Fault
) -> None:
    wallet = deployed(chain)
    first.add(fault)
    for signature in (wallet.owner.sign(DIGEST), new_key().sign(DIGEST), b"\1" * 200):
        with pytest.raises(SignatureNotCheckable):
            await desk.check(signature, wallet.address)
    first.heal()
    await desk.check(wallet.owner.sign(DIGEST), wallet.address)


async def test_a_node_that_stands_still_says_nothing(desk: Desk, chain: TestChain) -> None:
    wallet = deployed(chain)
    chain.ask("evm_mine")
    desk.start(max_age=10**9)
    await desk.check(wallet.owner.sign(DIGEST), wallet.address)
    desk.start(max_age=-(10**9))  # as if the present were long after its last block
    with pytest.raises(SignatureNotCheckable):
        await desk.check(wallet.owner.sign(DIGEST), wallet.address)


LIE = Fault(kind="result", method="eth_call", value="0x01")


async def test_one_lying_node_of_two_gives_nobodys_money_away(
    pair: Desk, chain: TestChain, first: FaultRpc, second: FaultRpc
) -> None:
    wallet = deployed(chain)
    first.add(LIE)
    for victim in (wallet.address, new_key().address):
        with pytest.raises(SignatureNotCheckable):
            await pair.check(new_key().sign(DIGEST), victim)
    second.add(Fault(kind="cut"))  # and it alone is not enough
    with pytest.raises(SignatureNotCheckable):
        await pair.check(new_key().sign(DIGEST), wallet.address)


async def test_a_yes_needs_both_of_two_nodes_and_a_no_only_one(
    pair: Desk, chain: TestChain, first: FaultRpc, second: FaultRpc
) -> None:
    wallet = deployed(chain)
    await pair.check(wallet.owner.sign(DIGEST), wallet.address)
    second.add(Fault(kind="http-status"))
    pair.start()
    with pytest.raises(SignatureNotCheckable):
        await pair.check(wallet.owner.sign(DIGEST), wallet.address)
    with pytest.raises(WrongSigner):
        await pair.check(new_key().sign(DIGEST), wallet.address)


async def test_what_is_kept_says_at_which_block_the_contract_said_yes(
    desk: Desk, chain: TestChain, database_url: str
) -> None:
    wallet, digest = deployed(chain), secrets.token_bytes(32)
    signature = wallet.owner.sign(digest)
    signatures = WalletSignatures(desk.contracts)
    await signatures.check_kept(digest, signature, signer=wallet.address)
    height = chain.height()
    chain.mine()
    desk.start()
    await signatures.check_kept(digest, signature, signer=wallet.address)
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT signer, method, block_number FROM offpeak.contract_signature WHERE digest = %s",
            (digest,),
        ).fetchall()
    assert rows == [(wallet.address, "erc-1271", height)]
    plain, digest = new_key(), secrets.token_bytes(32)
    await signatures.check_kept(digest, plain.sign(digest), signer=plain.address)
    with psycopg.connect(database_url) as connection:
        count = connection.execute(
            "SELECT count(*) FROM offpeak.contract_signature WHERE digest = %s", (digest,)
        ).fetchone()
    assert count == (0,)
