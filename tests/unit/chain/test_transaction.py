"""Transactions byte for byte as eth-account makes them; nothing else is read as one."""

import pytest
import rlp
from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hypothesis import given
from hypothesis import strategies as st

from app.chain.errors import TransactionMalformed
from app.chain.quantities import show_data
from app.chain.transaction import FIELDS, SignedTransaction, Transaction
from ledger.encoding import Address
from ledger.signing import CURVE_ORDER, SigningKey

KEY = b"\x11" * 31 + b"\x07"
WEI = st.integers(1, 10**14)
DATA_FIELD = 7

transactions = st.builds(
    Transaction,
    chain_id=st.integers(1, 2**53 - 1),
    nonce=st.integers(0, 2**32),
    to=st.one_of(
        st.none(), st.binary(min_size=20, max_size=20).map(lambda b: Address(show_data(b)))
    ),
    data=st.binary(max_size=200),
    gas=st.integers(21_000, 2**32),
    max_fee=WEI,
    priority_fee=st.integers(0, 10**14),
    value=st.integers(0, 2**128),
)


def signed(transaction: Transaction) -> SignedTransaction:
    return transaction.signed(SigningKey(KEY).sign(transaction.digest()))


@given(transactions)
def test_bytes_hash_and_sender_are_eth_accounts(transaction: Transaction) -> None:
    to = bytes.fromhex((transaction.to or "0x")[2:])
    fields = {**transaction.message(), "to": to}
    theirs = Account.sign_transaction(fields, KEY)
    ours = signed(transaction)
    assert ours.raw == bytes(theirs.raw_transaction)
    assert ours.hash == bytes(theirs.hash)
    assert ours.sender == SigningKey(KEY).address
    assert Account.recover_transaction(ours.raw).lower() == ours.sender
    assert transaction.digest() == bytes(TypedTransaction.from_dict(fields).hash())


@given(transactions)
def test_a_raw_transaction_is_read_as_what_was_signed(transaction: Transaction) -> None:
    found = SignedTransaction.parse(signed(transaction).raw)
    assert found.transaction == transaction


@given(transactions, st.data())
def test_a_changed_byte_is_no_transaction_or_another_senders(
    transaction: Transaction, choice: st.DataObject
) -> None:
    raw = bytearray(signed(transaction).raw)
    place = choice.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= choice.draw(st.integers(1, 255))
    try:
        found = SignedTransaction.parse(bytes(raw))
    except TransactionMalformed:
        return
    assert found.sender != SigningKey(KEY).address


def test_other_kinds_of_transactions_are_refused() -> None:
    legacy = {"nonce": 0, "to": b"\xab" * 20, "value": 1, "gas": 21_000, "gasPrice": 7}
    listed = {
        "type": 2,
        "chainId": 1,
        "nonce": 0,
        "to": b"\xab" * 20,
        "value": 1,
        "gas": 21_000,
        "maxFeePerGas": 7,
        "maxPriorityFeePerGas": 1,
        "accessList": [{"address": "0x" + "ab" * 20, "storageKeys": []}],
    }
    for other in ({**legacy, "chainId": 1}, listed):
        raw = bytes(Account.sign_transaction(other, KEY).raw_transaction)
        with pytest.raises(TransactionMalformed):
            SignedTransaction.parse(raw)
    for wrong in (b"", b"\x02", b"\x02\xc0", b"\x02" + bytes(200_000)):
        with pytest.raises(TransactionMalformed):
            SignedTransaction.parse(wrong)


def test_a_high_s_is_refused_though_it_recovers_the_same_sender() -> None:
    transaction = Transaction(
        chain_id=1, nonce=0, to=None, data=b"", gas=21_000, max_fee=7, priority_fee=1
    )
    signature = SigningKey(KEY).sign(transaction.digest())
    high = CURVE_ORDER - int.from_bytes(signature[32:64])
    parity = 55 - signature[64]
    with pytest.raises(TransactionMalformed, match="upper half"):
        transaction.signed(signature[:32] + high.to_bytes(32) + bytes((parity,)))


@given(transactions, st.binary(min_size=1, max_size=9))
def test_more_or_fewer_bytes_are_no_transaction(transaction: Transaction, more: bytes) -> None:
    raw = signed(transaction).raw
    for wrong in (raw + more, raw[: -len(more)]):
        with pytest.raises(TransactionMalformed):
            SignedTransaction.parse(wrong)


@given(st.binary(max_size=60))
def test_bytes_of_no_transaction_are_refused_by_their_class(raw: bytes) -> None:
    with pytest.raises(TransactionMalformed):
        SignedTransaction.parse(b"\x02" + raw)


@pytest.mark.parametrize("raw", ["", "8100", "b8", "b800", "b90001", "c101ff", "83aabb", "c3c2c2"])
def test_each_other_form_of_a_value_is_refused(raw: str) -> None:
    with pytest.raises(TransactionMalformed, match="not canonical RLP"):
        SignedTransaction.parse(b"\x02" + bytes.fromhex(raw))


@pytest.mark.parametrize("place", range(FIELDS + 3))
def test_a_field_with_a_leading_zero_or_as_a_list_is_refused(place: int) -> None:
    whole = Transaction(
        chain_id=1, nonce=1, to=None, data=b"", gas=21_000, max_fee=7, priority_fee=1, value=1
    )
    for other in (b"\x00\x01", [b"\x01"]):
        parts = rlp.decode(signed(whole).raw[1:])
        if place == DATA_FIELD and isinstance(other, bytes):
            continue
        parts[place] = other
        with pytest.raises(TransactionMalformed):
            SignedTransaction.parse(b"\x02" + rlp.encode(parts))


def test_lists_that_nest_without_end_are_refused() -> None:
    nested = b"\xc0"
    while len(nested) < 20_000:
        nested = rlp.codec.length_prefix(len(nested), 0xC0) + nested
    with pytest.raises(TransactionMalformed):
        SignedTransaction.parse(b"\x02" + nested)
