"""A real development chain for the tests: one anvil per module, its id asserted.

The keys below are the ten that anvil publishes. They are TEST KEYS: known to everybody, worth
nothing on any chain. Blocks are mined one per transaction; `finalized` is two behind `latest`.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.chain import calls
from app.chain.blocks import TransactionReceipt
from app.chain.deploy import Deployed, DeployTerms, deploy
from app.chain.keys import KeystoreKey
from app.chain.rpc import ChainRpc, open_rpc
from app.chain.sending import Outgoing, prepare, send_and_wait
from app.embedded.anvil import AnvilOptions, EmbeddedAnvil
from app.embedded.npm import can_have_anvil
from ledger.encoding import Address
from ledger.signing import SigningKey

CHAIN_ID = 31_337
FINAL_BLOCKS = 2
"""How far `finalized` is behind `latest`; `safe` is half of it."""

TEST_KEYS = tuple(
    bytes.fromhex(key)
    for key in (
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
        "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
        "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
        "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
    )
)


@dataclass(frozen=True, slots=True)
class TestChain:
    """A development chain and what only a test may do to it. Blocking; `rpc` is for the code."""

    __test__ = False
    anvil: EmbeddedAnvil

    @property
    def url(self) -> str:
        """Its JSON-RPC URL."""
        return self.anvil.url

    def rpc(self) -> ChainRpc:
        """A client of its own, for one event loop; close it."""
        return open_rpc([self.url])

    def send(self, key: int, to: Address, data: bytes, *, value: int = 0) -> TransactionReceipt:
        """The receipt of a transaction of `TEST_KEYS[key]`, mined and not reverted."""
        return asyncio.run(self.send_later(key, to, data, value=value))

    async def send_later(
        self, key: int, to: Address, data: bytes, *, value: int = 0
    ) -> TransactionReceipt:
        """Do as `send`, inside an event loop."""
        signer = KeystoreKey(TEST_KEYS[key])
        async with self.rpc() as rpc:
            outgoing = Outgoing(to=to, data=data, value=value)
            transaction = await prepare(rpc, signer.address, outgoing)
            return await send_and_wait(rpc, signer, transaction, wait_seconds=10)

    def ask(self, method: str, *params: object) -> object:
        """One JSON-RPC call."""
        return self.anvil.ask(method, *params)

    def mine(self, blocks: int = 1) -> None:
        """Mine so many blocks, one second apart, at once."""
        self.ask("anvil_mine", hex(blocks))

    def finalize(self) -> None:
        """Make what is mined now final."""
        self.mine(FINAL_BLOCKS)

    def height(self) -> int:
        """The number of the latest block."""
        return int(str(self.ask("eth_blockNumber")), 16)

    def now(self) -> int:
        """The latest block's time, Unix seconds."""
        block = self.ask("eth_getBlockByNumber", "latest", False)
        assert isinstance(block, dict)
        return int(block["timestamp"], 16)

    def set_time(self, timestamp: int) -> None:
        """Mine a block with this time, Unix seconds; it must be later than the last."""
        self.ask("evm_setNextBlockTimestamp", timestamp)
        self.mine()

    def forward(self, seconds: int) -> None:
        """Mine a block so many seconds later than the last."""
        self.set_time(self.now() + seconds)

    def reorg(self, depth: int, transactions: tuple[tuple[bytes, int], ...] = ()) -> None:
        """Replace the last `depth` blocks by as many others.

        What they held is gone, save `transactions`: raw ones, each with the number, from 0, of
        the new block that takes it.
        """
        pairs = [["0x" + raw.hex(), number] for raw, number in transactions]
        self.ask("anvil_reorg", depth, pairs)

    def pause_mining(self) -> None:
        """Mine nothing until `resume_mining`; transactions wait in the pool."""
        self.ask("evm_setAutomine", False)

    def resume_mining(self) -> None:
        """Mine a block for each transaction again."""
        self.ask("evm_setAutomine", True)

    def set_gas_money(self, address: Address, wei: int) -> None:
        """Give an address this native balance."""
        self.ask("anvil_setBalance", address, hex(wei))


ADMIN, OPERATOR, GUARDIAN, ANCHOR, ALICE, BOB, SUPPLIER = range(7)
"""Who holds which of `TEST_KEYS`. The admin deployed the contracts."""
EXIT_DELAY = 86_400
PAYOUT_DAY_LIMIT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Contracts:
    """The deployed contracts and what tests do with them; amounts in base units. Blocking."""

    chain: TestChain
    token: Address
    treasury: Address
    anchor: Address
    first_block: int

    def mint(self, holder: Address, amount: int) -> TransactionReceipt:
        """Make tokens."""
        return self.chain.send(ADMIN, self.token, calls.MINT.data(holder, amount))

    def deposit(
        self, key: int, amount: int, *, to: Address | None = None, ref: bytes = bytes(32)
    ) -> TransactionReceipt:
        """Mint, approve and deposit, for the key's own wallet or `to`: the deposit's receipt."""
        wallet = address_of_key(key)
        self.mint(wallet, amount)
        self.chain.send(key, self.token, calls.APPROVE.data(self.treasury, amount))
        return self.chain.send(key, self.treasury, calls.deposit(to or wallet, amount, ref))

    def transfer(self, key: int, amount: int) -> TransactionReceipt:
        """Mint and send tokens to the treasury by plain transfer: nobody is credited."""
        self.mint(address_of_key(key), amount)
        return self.chain.send(key, self.token, calls.TRANSFER.data(self.treasury, amount))

    def deny(self, holder: Address, *, denied: bool = True) -> TransactionReceipt:
        """Put an address on the token's deny list, or take it off."""
        return self.chain.send(ADMIN, self.token, calls.BLACKLIST.data(holder, denied))

    def operate(self, data: bytes) -> TransactionReceipt:
        """Call the treasury as its operator."""
        return self.chain.send(OPERATOR, self.treasury, data)


def deployed_on(chain: TestChain) -> Contracts:
    """Fresh contracts on a chain, and two blocks on top so that they are final."""
    found: Deployed = asyncio.run(_deploy(chain))
    chain.finalize()
    return Contracts(chain, found.token, found.treasury, found.anchor, found.block_number)


async def _deploy(chain: TestChain) -> Deployed:
    terms = DeployTerms(
        token=None,
        operator=address_of_key(OPERATOR),
        guardian=address_of_key(GUARDIAN),
        anchor=address_of_key(ANCHOR),
        admin_delay=0,
        exit_delay=EXIT_DELAY,
        payout_day_limit=PAYOUT_DAY_LIMIT,
        wait_seconds=10,
    )
    async with chain.rpc() as rpc:
        return await deploy(rpc, KeystoreKey(TEST_KEYS[ADMIN]), terms)


def address_of_key(number: int) -> Address:
    """The address of `TEST_KEYS[number]`."""
    return SigningKey(TEST_KEYS[number]).address


@pytest.fixture(scope="module")
def chain() -> Iterator[TestChain]:
    """A fresh chain that this module alone uses."""
    if not can_have_anvil(os.environ):
        pytest.skip("the development chain needs node and npm, or OFFPEAK_ANVIL")
    with EmbeddedAnvil.start(AnvilOptions(chain_id=CHAIN_ID)) as anvil:
        anvil.check_id(CHAIN_ID)
        yield TestChain(anvil)


@pytest.fixture(scope="module")
def contracts(chain: TestChain) -> Contracts:
    """The treasury, the receipt anchor and the development token on this module's chain."""
    return deployed_on(chain)
