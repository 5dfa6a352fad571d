"""What our contracts say, typed; every read names its block. Amounts are base units.

All raise `RpcUnavailable` (nothing is known), `RpcRefused` (it reverted) and `MalformedAnswer`
(there is no such contract, or another one).
"""

from dataclasses import dataclass
from typing import Final

from app.chain.abi import Function
from app.chain.blocks import BlockRef
from app.chain.errors import MalformedAnswer
from app.chain.rpc import CallRequest, ChainRpc
from ledger.encoding import Address, Domain

_ACCOUNTS: Final = Function("accounts(address)(uint128,uint128,uint128,uint128,uint64)")
_AVAILABLE: Final = Function("available(address)(uint256)")
_USED_ID: Final = Function("usedId(bytes32)(bool)")
_TOTAL_LIABILITY: Final = Function("totalLiability()(uint256)")
_EARNED: Final = Function("earned()(uint256)")
_UNACCOUNTED: Final = Function("unaccounted()(uint256)")
_EVENT_COUNT: Final = Function("eventCount()(uint256)")
_PAUSED: Final = Function("paused()(bool)")
_EXIT_DELAY: Final = Function("exitDelay()(uint256)")
_EXIT_WINDOW: Final = Function("EXIT_WINDOW()(uint256)")
_TOKEN: Final = Function("token()(address)")
_PAYOUT_DAY_LIMIT: Final = Function("payoutDayLimit()(uint256)")
_PAYOUT_ROOM: Final = Function("payoutRoom()(uint256)")
_EIP712_DOMAIN: Final = Function(
    "eip712Domain()(bytes1,string,string,uint256,address,bytes32,uint256[])"
)
_HAS_ROLE: Final = Function("hasRole(bytes32,address)(bool)")
_OPERATOR_ROLE: Final = Function("OPERATOR_ROLE()(bytes32)")
_GUARDIAN_ROLE: Final = Function("GUARDIAN_ROLE()(bytes32)")
_ANCHOR_ROLE: Final = Function("ANCHOR_ROLE()(bytes32)")
_SIZE: Final = Function("size()(uint64)")
_ROOT: Final = Function("root()(bytes32)")
_ROOT_AT: Final = Function("rootAt(uint64)(bytes32)")
_BALANCE_OF: Final = Function("balanceOf(address)(uint256)")
_ALLOWANCE: Final = Function("allowance(address,address)(uint256)")
_NONCES: Final = Function("nonces(address)(uint256)")
_DECIMALS: Final = Function("decimals()(uint8)")
_NAME: Final = Function("name()(string)")
_VERSION: Final = Function("version()(string)")
_DOMAIN_SEPARATOR: Final = Function("DOMAIN_SEPARATOR()(bytes32)")


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract at an address, read through `rpc`."""

    rpc: ChainRpc
    address: Address

    async def read(self, function: Function, block: BlockRef, *arguments: object) -> bytes:
        """What a view returns in the state after `block`, still encoded."""
        return await self.rpc.call(
            CallRequest(to=self.address, data=function.data(*arguments)), block
        )

    async def integer(self, function: Function, block: BlockRef, *arguments: object) -> int:
        """What a view with one integer result returns."""
        return function.integer(await self.read(function, block, *arguments))

    async def flag(self, function: Function, block: BlockRef, *arguments: object) -> bool:
        """What a view with one bool result returns."""
        return bool(await self.integer(function, block, *arguments))

    async def octets(self, function: Function, block: BlockRef, *arguments: object) -> bytes:
        """What a view with one bytes result returns."""
        return function.octets(await self.read(function, block, *arguments))

    async def text(self, function: Function, block: BlockRef, *arguments: object) -> str:
        """What a view with one string or address result returns."""
        return function.text(await self.read(function, block, *arguments))

    async def has_role(self, role: bytes, holder: Address, block: BlockRef) -> bool:
        """Whether an address holds a role."""
        return await self.flag(_HAS_ROLE, block, role, holder)

    async def domain(self, block: BlockRef) -> Domain:
        """The contract's own EIP-712 domain (ERC-5267).

        Raises:
            MalformedAnswer: it has another form of domain than ours.
        """
        answer = _EIP712_DOMAIN.results(await self.read(_EIP712_DOMAIN, block))
        fields, name, version, chain_id, contract, salt, extensions = answer
        if fields != b"\x0f" or salt != bytes(32) or extensions != ():
            raise MalformedAnswer("eip712Domain", "another form of domain")
        assert isinstance(chain_id, int)
        return Domain(str(name), str(version), chain_id, Address(str(contract)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainAccount:
    """A wallet's account in the treasury; `exit_ready_at` is 0 without an exit."""

    deposited: int
    withdrawn: int
    spent: int
    exit_amount: int
    exit_ready_at: int


@dataclass(frozen=True, slots=True)
class TreasuryContract(Contract):
    """The treasury."""

    async def account(self, payer: Address, block: BlockRef) -> ChainAccount:
        """A wallet's figures, all zero for one that never deposited."""
        found = _ACCOUNTS.results(await self.read(_ACCOUNTS, block, payer))
        figures = [value for value in found if isinstance(value, int)]
        deposited, withdrawn, spent, exit_amount, exit_ready_at = figures
        return ChainAccount(
            deposited=deposited,
            withdrawn=withdrawn,
            spent=spent,
            exit_amount=exit_amount,
            exit_ready_at=exit_ready_at,
        )

    async def available(self, payer: Address, block: BlockRef) -> int:
        """What a wallet could take by what the chain knows."""
        return await self.integer(_AVAILABLE, block, payer)

    async def used_id(self, used: bytes, block: BlockRef) -> bool:
        """Whether a withdrawal, refund, credit or payout id is used."""
        return await self.flag(_USED_ID, block, used)

    async def total_liability(self, block: BlockRef) -> int:
        """What all wallets could take together."""
        return await self.integer(_TOTAL_LIABILITY, block)

    async def earned(self, block: BlockRef) -> int:
        """What may be paid out to suppliers."""
        return await self.integer(_EARNED, block)

    async def unaccounted(self, block: BlockRef) -> int:
        """Tokens that came by plain transfer and belong to nobody yet."""
        return await self.integer(_UNACCOUNTED, block)

    async def event_count(self, block: BlockRef) -> int:
        """How many events of `TREASURY_EVENTS` were ever emitted."""
        return await self.integer(_EVENT_COUNT, block)

    async def paused(self, block: BlockRef) -> bool:
        """Whether only exits work."""
        return await self.flag(_PAUSED, block)

    async def exit_delay(self, block: BlockRef) -> int:
        """Seconds from the request of an exit until it is ready."""
        return await self.integer(_EXIT_DELAY, block)

    async def exit_window(self, block: BlockRef) -> int:
        """Seconds for which a ready exit may be finalized."""
        return await self.integer(_EXIT_WINDOW, block)

    async def token(self, block: BlockRef) -> Address:
        """The token it holds."""
        return Address(await self.text(_TOKEN, block))

    async def payout_day_limit(self, block: BlockRef) -> int:
        """What may be paid out in one day."""
        return await self.integer(_PAYOUT_DAY_LIMIT, block)

    async def payout_room(self, block: BlockRef) -> int:
        """What may still be paid out today."""
        return await self.integer(_PAYOUT_ROOM, block)

    async def operator_role(self, block: BlockRef) -> bytes:
        """The role that withdraws, commits and pays out."""
        return await self.octets(_OPERATOR_ROLE, block)

    async def guardian_role(self, block: BlockRef) -> bytes:
        """The role that may pause."""
        return await self.octets(_GUARDIAN_ROLE, block)


@dataclass(frozen=True, slots=True)
class AnchorContract(Contract):
    """The receipt anchor."""

    async def size(self, block: BlockRef) -> int:
        """Entries of the receipt log at the last anchor, 0 before the first."""
        return await self.integer(_SIZE, block)

    async def root(self, block: BlockRef) -> bytes:
        """The log's root at the last anchor."""
        return await self.octets(_ROOT, block)

    async def root_at(self, size: int, block: BlockRef) -> bytes | None:
        """The anchored root at a size, None when that size was never anchored."""
        found = await self.octets(_ROOT_AT, block, size)
        return found if any(found) else None

    async def anchor_role(self, block: BlockRef) -> bytes:
        """The role that publishes."""
        return await self.octets(_ANCHOR_ROLE, block)


@dataclass(frozen=True, slots=True)
class TokenContract(Contract):
    """The settlement token."""

    async def balance_of(self, holder: Address, block: BlockRef) -> int:
        """What an address holds."""
        return await self.integer(_BALANCE_OF, block, holder)

    async def allowance(self, owner: Address, spender: Address, block: BlockRef) -> int:
        """What `spender` may take from `owner`."""
        return await self.integer(_ALLOWANCE, block, owner, spender)

    async def permit_nonce(self, owner: Address, block: BlockRef) -> int:
        """The nonce of the owner's next ERC-2612 permit."""
        return await self.integer(_NONCES, block, owner)

    async def decimals(self, block: BlockRef) -> int:
        """How many decimals a token has."""
        return await self.integer(_DECIMALS, block)

    async def domain_separator(self, block: BlockRef) -> bytes:
        """What permits and authorizations of this token are bound to."""
        return await self.octets(_DOMAIN_SEPARATOR, block)

    async def expected_domain(self, chain_id: int, block: BlockRef) -> Domain:
        """The domain that its name and version make on this chain."""
        version = await self.text(_VERSION, block)
        return Domain(await self.text(_NAME, block), version, chain_id, self.address)
