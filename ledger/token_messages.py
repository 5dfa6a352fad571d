"""What a wallet signs for the settlement token itself, under the token's own EIP-712 domain.

The token's contract checks both messages; amounts are base units (USDC: 10^-6), times unix
seconds. Sources: EIP-2612 (`Permit`), EIP-3009 (`ReceiveWithAuthorization`).
"""

from dataclasses import dataclass
from typing import ClassVar

from ledger.encoding import Address
from ledger.typed_data import StructType, TypedMessage


@dataclass(frozen=True, slots=True)
class Permit(TypedMessage):
    """The owner lets a spender take up to `value` until `deadline`; `nonce` is the token's next."""

    TYPE: ClassVar[StructType] = StructType(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    )

    owner: Address
    spender: Address
    value: int
    nonce: int
    deadline: int


@dataclass(frozen=True, slots=True)
class ReceiveWithAuthorization(TypedMessage):
    """`to` may draw `value` from the payer, once, and nobody else may.

    The treasury draws deposits with it. Its nonce is then keccak256(abi.encode(beneficiary, ref)),
    so that who brings the signature cannot choose who is credited.
    """

    TYPE: ClassVar[StructType] = StructType(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,"
        "uint256 validBefore,bytes32 nonce)"
    )

    from_: Address
    to: Address
    value: int
    valid_after: int
    valid_before: int
    nonce: bytes
