"""Deploying the contracts: the treasury, the receipt anchor and, in development, a token.

The deploying key is the first admin, since only an admin grants roles; a transfer to the lasting
admin is begun at the end, who accepts it after the delay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.chain.abi import Function, encode_arguments
from app.chain.artifacts import ContractName, load_artifact
from app.chain.calls import GRANT_ROLE
from app.chain.contracts import AnchorContract, TreasuryContract
from app.chain.errors import MalformedAnswer
from app.chain.keys import ChainKey
from app.chain.rpc import ChainRpc
from app.chain.sending import Outgoing, created_address, prepare, send_and_wait
from ledger.encoding import Address

_BEGIN_TRANSFER: Final = Function("beginDefaultAdminTransfer(address)")
_TREASURY_ARGUMENTS: Final = ("address", "address", "uint48", "uint64", "uint128")
_ANCHOR_ARGUMENTS: Final = ("address", "uint48")


Say = Callable[[str], None]
DEPLOYMENT_GAS: Final = 6_000_000
"""More than all steps took together when they were measured (5.4 million, without a token)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployTerms:
    """What to deploy and who holds which role.

    `token` None deploys the development token, which anybody can mint. Delays in seconds,
    `payout_day_limit` in base units. `admin` None leaves the deploying key the admin.
    """

    token: Address | None
    operator: Address
    guardian: Address
    anchor: Address
    admin: Address | None = None
    admin_delay: int
    exit_delay: int
    payout_day_limit: int
    wait_seconds: float = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """Where the contracts are, and the block of the first of them: scanning starts there."""

    chain_id: int
    token: Address
    treasury: Address
    anchor: Address
    block_number: int


def silent(_: str) -> None:
    """Say nothing."""


async def deploy(
    rpc: ChainRpc, key: ChainKey, terms: DeployTerms, *, say: Say = silent
) -> Deployed:
    """Deploy the contracts and grant the roles; each step waits until it is mined, and is said.

    Raises:
        RpcRefused, TransactionRefused, TransactionReverted, TransactionPending, KeyRefused,
        RpcUnavailable: it stopped there; what was deployed before is unused.
    """
    work = _Deployment(rpc, key, terms.wait_seconds, say)
    token = terms.token or await work.create("MockUSDC", b"")
    treasury = await work.create(
        "Treasury",
        encode_arguments(
            _TREASURY_ARGUMENTS,
            token,
            key.address,
            terms.admin_delay,
            terms.exit_delay,
            terms.payout_day_limit,
        ),
    )
    anchor = await work.create(
        "ReceiptAnchor", encode_arguments(_ANCHOR_ARGUMENTS, key.address, terms.admin_delay)
    )
    contract = TreasuryContract(rpc, treasury)
    operator_role = await contract.operator_role("latest")
    guardian_role = await contract.guardian_role("latest")
    anchor_role = await AnchorContract(rpc, anchor).anchor_role("latest")
    grants = (
        ("operator", treasury, operator_role, terms.operator),
        ("guardian", treasury, guardian_role, terms.guardian),
        ("anchor", anchor, anchor_role, terms.anchor),
    )
    for name, contract_address, role, holder in grants:
        await work.send(f"grant {name}", contract_address, GRANT_ROLE.data(role, holder))
    if terms.admin is not None and terms.admin != key.address:
        for contract_address in (treasury, anchor):
            await work.send("offer admin", contract_address, _BEGIN_TRANSFER.data(terms.admin))
    assert work.first_block is not None
    return Deployed(
        chain_id=await rpc.chain_id(),
        token=token,
        treasury=treasury,
        anchor=anchor,
        block_number=work.first_block,
    )


class _Deployment:
    """Transactions of one key, one after the other."""

    def __init__(self, rpc: ChainRpc, key: ChainKey, wait_seconds: float, say: Say) -> None:
        self._rpc = rpc
        self._key = key
        self._wait_seconds = wait_seconds
        self._say = say
        self.first_block: int | None = None

    async def send(self, what: str, to: Address | None, data: bytes) -> Address | None:
        """Send and wait; the address of a created contract."""
        outgoing = Outgoing(to=to, data=data)
        transaction = await prepare(self._rpc, self._key.address, outgoing)
        self._say(f"sending: {what}")
        receipt = await send_and_wait(
            self._rpc, self._key, transaction, wait_seconds=self._wait_seconds
        )
        mined = f"0x{receipt.transaction_hash.hex()} in block {receipt.block_number}"
        self._say(f"mined: {what}, {mined}")
        if self.first_block is None:
            self.first_block = receipt.block_number
        if to is None and receipt.contract != created_address(self._key.address, transaction.nonce):
            raise MalformedAnswer("contractAddress", "not where the contract was created")
        return receipt.contract

    async def create(self, name: ContractName, arguments: bytes) -> Address:
        """The address of a new contract."""
        found = await self.send(f"create {name}", None, load_artifact(name).bytecode + arguments)
        assert found is not None
        return found
