"""What a wallet signs: seven EIP-712 messages under the domain `OFFPEAK`, version 1.

Times are unix seconds. Fields named `..._nano` are nano of the token; the wire allows all of
uint256, so whoever stores one compares it with `ledger.money.MAX_NANO` first. A `Withdrawal`
speaks of base units of the token, because the treasury contract checks it.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from ledger.encoding import Address, Domain
from ledger.money import Nano
from ledger.typed_data import StructType, TypedMessage

DOMAIN_NAME: Final = "OFFPEAK"
DOMAIN_VERSION: Final = "1"

NO_DELEGATION: Final = bytes(32)
"""The `delegation` of a request that the paying wallet signs itself."""


def authorization_domain(*, chain_id: int, treasury: Address) -> Domain:
    """The domain of authorizations and quotes: the treasury contract on its chain."""
    return Domain(DOMAIN_NAME, DOMAIN_VERSION, chain_id, treasury)


@dataclass(frozen=True, slots=True)
class ReadAccess(TypedMessage):
    """The payer may read `scope` (`balances`, `jobs`, `receipts`) until `valid_until`."""

    TYPE: ClassVar[StructType] = StructType(
        "ReadAccess(address payer,string scope,uint64 validUntil,bytes32 nonce)"
    )

    payer: Address
    scope: str
    valid_until: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class RequestAuthorization(TypedMessage):
    """The payer accepts one quote for one request at no more than `max_charge_nano`.

    `quote_digest` is the quote's EIP-712 digest, `request_digest` comes from
    `ledger.commitment.request_digest`, `delegation` is 32 zero bytes or the digest of the
    `BudgetDelegation` whose delegate signs.
    """

    TYPE: ClassVar[StructType] = StructType(
        "RequestAuthorization(address payer,bytes32 delegation,bytes32 quoteDigest,"
        "bytes32 requestDigest,string model,uint32 maxOutputTokens,address token,"
        "uint256 maxChargeNano,uint64 validAfter,uint64 deadline,bytes32 nonce)"
    )

    payer: Address
    delegation: bytes
    quote_digest: bytes
    request_digest: bytes
    model: str
    max_output_tokens: int
    token: Address
    max_charge_nano: Nano
    valid_after: int
    deadline: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class CancelJob(TypedMessage):
    """The payer stops a job; `job` is its id by `ledger.encoding.uuid_bytes32`."""

    TYPE: ClassVar[StructType] = StructType(
        "CancelJob(address payer,bytes32 job,bytes32 nonce,uint64 deadline)"
    )

    payer: Address
    job: bytes
    nonce: bytes
    deadline: int


@dataclass(frozen=True, slots=True)
class BudgetDelegation(TypedMessage):
    """The payer lets another key authorize requests within a budget."""

    TYPE: ClassVar[StructType] = StructType(
        "BudgetDelegation(address payer,address delegate,address token,uint256 maxTotalNano,"
        "uint256 maxPerRequestNano,uint256 maxPerPeriodNano,uint64 periodSeconds,string models,"
        "uint64 validAfter,uint64 validUntil,bytes32 nonce)"
    )

    payer: Address
    delegate: Address
    token: Address
    max_total_nano: Nano
    max_per_request_nano: Nano
    max_per_period_nano: Nano
    period_seconds: int
    models: str
    valid_after: int
    valid_until: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class RevokeDelegation(TypedMessage):
    """The payer ends a delegation, named by its digest."""

    TYPE: ClassVar[StructType] = StructType(
        "RevokeDelegation(address payer,bytes32 delegation,bytes32 nonce,uint64 deadline)"
    )

    payer: Address
    delegation: bytes
    nonce: bytes
    deadline: int


@dataclass(frozen=True, slots=True)
class Withdrawal(TypedMessage):
    """The payer takes prepaid funds back; the recipient is always the payer.

    `amount` and `max_fee` are base units of the token (USDC: 10^-6), not nano.
    """

    TYPE: ClassVar[StructType] = StructType(
        "Withdrawal(address payer,address token,uint256 amount,uint256 maxFee,bytes32 nonce,"
        "uint64 deadline)"
    )

    payer: Address
    token: Address
    amount: int
    max_fee: int
    nonce: bytes
    deadline: int


@dataclass(frozen=True, slots=True)
class SuspenseClaim(TypedMessage):
    """The payer wants tokens that it sent to the treasury by a plain transfer as a deposit.

    `transaction` and `log_index` name the token's Transfer log.
    """

    TYPE: ClassVar[StructType] = StructType(
        "SuspenseClaim(address payer,bytes32 transaction,uint64 logIndex,bytes32 nonce,"
        "uint64 deadline)"
    )

    payer: Address
    transaction: bytes
    log_index: int
    nonce: bytes
    deadline: int
