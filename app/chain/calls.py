"""Call data of our contracts: every function that OFFPEAK or a wallet calls, with typed arguments.

Amounts are base units, times Unix seconds, ids and nonces 32 bytes. Names are the contracts' own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.chain.abi import Function, encode_arguments
from ledger.encoding import Address
from ledger.hashing import keccak256

DEPOSIT: Final = Function("deposit(address,uint256,bytes32)")
DEPOSIT_WITH_PERMIT: Final = Function(
    "depositWithPermit(address,uint256,bytes32,uint256,uint8,bytes32,bytes32)"
)
DEPOSIT_WITH_AUTHORIZATION: Final = Function(
    "depositWithAuthorization"
    "(address,address,uint256,bytes32,uint256,uint256,uint8,bytes32,bytes32)"
)
WITHDRAW: Final = Function("withdraw(address,uint256,uint256,bytes32,uint64,uint256,bytes)")
COMMIT_SPEND: Final = Function("commitSpend(uint256,address[],uint128[])")
REFUND: Final = Function("refund(address,uint128,bytes32)")
CREDIT_UNACCOUNTED: Final = Function("creditUnaccounted(address,uint128,bytes32)")
PAYOUT: Final = Function("payout(bytes32[],address[],uint128[])")
REQUEST_EXIT: Final = Function("requestExit(uint128)")
CANCEL_EXIT: Final = Function("cancelExit()")
FINALIZE_EXIT: Final = Function("finalizeExit()")
PAUSE: Final = Function("pause()")
UNPAUSE: Final = Function("unpause()")
GRANT_ROLE: Final = Function("grantRole(bytes32,address)")
PUBLISH: Final = Function("publish(uint64,bytes32,bytes32[])")
APPROVE: Final = Function("approve(address,uint256)(bool)")
TRANSFER: Final = Function("transfer(address,uint256)(bool)")
MINT: Final = Function("mint(address,uint256)")
BLACKLIST: Final = Function("blacklist(address,bool)")


@dataclass(frozen=True, slots=True)
class SplitSignature:
    """A 65-byte signature as the token's functions take it."""

    v: int
    r: bytes
    s: bytes


def split_signature(signature: bytes) -> SplitSignature:
    """The parts of r || s || v."""
    assert len(signature) == 65
    return SplitSignature(signature[64], signature[:32], signature[32:64])


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalCall:
    """A wallet's signed withdrawal and the fee that the operator takes, at most `max_fee`."""

    payer: Address
    amount: int
    max_fee: int
    nonce: bytes
    deadline: int
    fee: int
    signature: bytes

    def data(self) -> bytes:
        """The call data of `withdraw`."""
        return WITHDRAW.data(
            self.payer,
            self.amount,
            self.max_fee,
            self.nonce,
            self.deadline,
            self.fee,
            self.signature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizedDeposit:
    """An ERC-3009 deposit: the payer's authorization for exactly this beneficiary and ref."""

    payer: Address
    beneficiary: Address
    amount: int
    ref: bytes
    valid_after: int
    valid_before: int

    def nonce(self) -> bytes:
        """The authorization's nonce, which binds the beneficiary: keccak256(abi.encode(..))."""
        return keccak256(encode_arguments(["address", "bytes32"], self.beneficiary, self.ref))

    def data(self, signature: bytes) -> bytes:
        """The call data of `depositWithAuthorization`."""
        parts = split_signature(signature)
        return DEPOSIT_WITH_AUTHORIZATION.data(
            self.payer,
            self.beneficiary,
            self.amount,
            self.ref,
            self.valid_after,
            self.valid_before,
            parts.v,
            parts.r,
            parts.s,
        )


def deposit(beneficiary: Address, amount: int, ref: bytes) -> bytes:
    """A deposit of approved tokens."""
    return DEPOSIT.data(beneficiary, amount, ref)


def deposit_with_permit(
    payer: Address, amount: int, ref: bytes, *, deadline: int, signature: bytes
) -> bytes:
    """A deposit to the payer with an ERC-2612 permit."""
    parts = split_signature(signature)
    return DEPOSIT_WITH_PERMIT.data(payer, amount, ref, deadline, parts.v, parts.r, parts.s)


def commit_spend(batch: int, spent: Sequence[tuple[Address, int]]) -> bytes:
    """Cumulative net spending of wallets."""
    return COMMIT_SPEND.data(batch, [payer for payer, _ in spent], [total for _, total in spent])


def refund(payer: Address, amount: int, refund_id: bytes) -> bytes:
    """From earned back to a wallet."""
    return REFUND.data(payer, amount, refund_id)


def credit_unaccounted(beneficiary: Address, amount: int, credit_id: bytes) -> bytes:
    """Tokens that came by plain transfer, to a wallet."""
    return CREDIT_UNACCOUNTED.data(beneficiary, amount, credit_id)


def payout(items: Sequence[tuple[bytes, Address, int]]) -> bytes:
    """Earned funds to suppliers: (id, recipient, amount) each."""
    ids, recipients, amounts = zip(*items, strict=True)
    return PAYOUT.data(ids, recipients, amounts)


def request_exit(amount: int) -> bytes:
    """Ask for money without us; replaces an earlier request of the wallet."""
    return REQUEST_EXIT.data(amount)


def publish(size: int, root: bytes, proof: Sequence[bytes]) -> bytes:
    """Anchor the receipt log's root, with the consistency proof from the anchored one."""
    return PUBLISH.data(size, root, list(proof))
