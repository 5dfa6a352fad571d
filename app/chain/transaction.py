"""EIP-1559 transactions: fields, bytes, hash and sender.

Pure; a key is used in `keys.py`, what is offered for gas is decided in `fees.py`. Source: EIP-1559,
EIP-2718 (type 2). Coding is `rlp`'s, which takes the one canonical form of each value only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import rlp
from rlp.exceptions import RLPException

from app.chain.errors import TransactionMalformed
from app.chain.quantities import show_data, show_quantity
from ledger.encoding import Address
from ledger.errors import BadSignature
from ledger.hashing import keccak256
from ledger.signing import recover

Item: TypeAlias = int | bytes | Sequence["Item"]
"""What RLP encodes; it decodes to byte strings and lists of them."""

TYPE: Final = b"\x02"
FIELDS: Final = 9
"""Fields that are signed; the signature's three follow."""
MAX_RAW_BYTES: Final = 131_072
"""What nodes take at most (geth's txMaxSize)."""
_V_OFFSET: Final = 27


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The fields of an EIP-1559 transaction; fees in wei per gas, `value` in wei.

    `to` None creates a contract. There is no access list: ours gain nothing from one.
    """

    chain_id: int
    nonce: int
    to: Address | None
    data: bytes
    gas: int
    max_fee: int
    priority_fee: int
    value: int = 0

    def fields(self) -> list[Item]:
        """The fields in the order of EIP-1559, the access list empty."""
        return [
            self.chain_id,
            self.nonce,
            self.priority_fee,
            self.max_fee,
            self.gas,
            b"" if self.to is None else bytes.fromhex(self.to[2:]),
            self.value,
            self.data,
            [],
        ]

    def digest(self) -> bytes:
        """The 32 bytes that are signed."""
        return keccak256(TYPE + rlp.encode(self.fields()))

    def signed(self, signature: bytes) -> "SignedTransaction":
        """The raw transaction with a signature of 65 bytes, r || s || v, v 27 or 28.

        Raises:
            TransactionMalformed: it is not a signature in that form.
        """
        parts: list[Item] = [
            signature[64] - _V_OFFSET,
            int.from_bytes(signature[:32]),
            int.from_bytes(signature[32:64]),
        ]
        return SignedTransaction.parse(TYPE + rlp.encode([*self.fields(), *parts]))

    def message(self) -> dict[str, object]:
        """The fields as JSON-RPC writes them; what a signer command is given."""
        return {
            "type": "0x2",
            "chainId": show_quantity(self.chain_id),
            "nonce": show_quantity(self.nonce),
            "to": self.to,
            "value": show_quantity(self.value),
            "data": show_data(self.data),
            "gas": show_quantity(self.gas),
            "maxFeePerGas": show_quantity(self.max_fee),
            "maxPriorityFeePerGas": show_quantity(self.priority_fee),
            "accessList": [],
        }

    def most_wei(self) -> int:
        """The most that it can cost its sender."""
        return self.gas * self.max_fee + self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedTransaction:
    """A raw transaction and what it says: who sends it and its hash."""

    raw: bytes
    hash: bytes
    sender: Address
    transaction: Transaction

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """The transaction that raw bytes are.

        Raises:
            TransactionMalformed: no canonical EIP-1559 transaction with a low-s signature, or one
                with an access list.
        """
        if raw[:1] != TYPE or len(raw) > MAX_RAW_BYTES:
            raise TransactionMalformed("not an EIP-1559 transaction")
        try:
            parts: Item = rlp.decode(raw[1:])
        except (RLPException, RecursionError):
            raise TransactionMalformed("not canonical RLP") from None
        if not isinstance(parts, list) or len(parts) != FIELDS + 3 or parts[8] != []:
            raise TransactionMalformed("other fields")
        transaction = _transaction(parts)
        parity, r, s = (_integer("signature", part, 32) for part in parts[FIELDS:])
        signature = r.to_bytes(32) + s.to_bytes(32) + bytes((_V_OFFSET + min(parity, 2),))
        try:
            sender = recover(transaction.digest(), signature)
        except BadSignature as error:
            raise TransactionMalformed(str(error)) from None
        return cls(raw=raw, hash=keccak256(raw), sender=sender, transaction=transaction)


def _transaction(parts: Sequence[Item]) -> Transaction:
    to, data = parts[5], parts[7]
    if not isinstance(to, bytes) or len(to) not in {0, 20} or not isinstance(data, bytes):
        raise TransactionMalformed("to or data")
    return Transaction(
        chain_id=_integer("chainId", parts[0], 8),
        nonce=_integer("nonce", parts[1], 8),
        priority_fee=_integer("maxPriorityFeePerGas", parts[2], 32),
        max_fee=_integer("maxFeePerGas", parts[3], 32),
        gas=_integer("gas", parts[4], 8),
        to=Address(show_data(to)) if to else None,
        value=_integer("value", parts[6], 32),
        data=data,
    )


def _integer(what: str, part: Item, most_bytes: int) -> int:
    if not isinstance(part, bytes) or len(part) > most_bytes or part[:1] == b"\0":
        raise TransactionMalformed(what)
    return int.from_bytes(part)
