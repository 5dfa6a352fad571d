"""Transactions byte for byte as eth-account and rlp make them; and what may replace what."""

import pytest
import rlp
from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hypothesis import given
from hypothesis import strategies as st

from app.chain.blocks import Fees
from app.chain.errors import FeesCapped, TransactionMalformed
from app.chain.quantities import show_data
from app.chain.rlp import Item, MalformedRlp, rlp_decode, rlp_encode, rlp_integer
from app.chain.transaction import (
    SignedTransaction,
    Transaction,
    bumped,
    first_fees,
    replacement,
)
from ledger.encoding import Address
from ledger.signing import CURVE_ORDER, SigningKey

KEY = b"\x11" * 31 + b"\x07"
WEI = st.integers(1, 10**14)

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
items: st.SearchStrategy[Item] = st.recursive(
    st.binary(max_size=70), lambda inner: st.lists(inner, max_size=5), max_leaves=12
)


def signed(transaction: Transaction) -> SignedTransaction:
    return transaction.signed(SigningKey(KEY).sign(transaction.digest()))


@given(items)
def test_rlp_is_as_the_reference_library_writes_it(item: Item) -> None:
    assert rlp_encode(item) == rlp.encode(item)
    assert rlp_decode(rlp_encode(item)) == item


@given(st.binary(max_size=60))
def test_bytes_that_are_no_canonical_rlp_are_refused(raw: bytes) -> None:
    try:
        found = rlp_decode(raw)
    except MalformedRlp:
        return
    assert rlp_encode(found) == raw


@pytest.mark.parametrize("raw", ["", "8100", "b800", "b90001", "c101ff", "83aabb", "c3" + "c2" * 2])
def test_each_other_form_of_a_value_is_refused(raw: str) -> None:
    with pytest.raises(MalformedRlp):
        rlp_decode(bytes.fromhex(raw))


def test_rlp_that_nests_without_end_is_refused() -> None:
    with pytest.raises(MalformedRlp):
        rlp_decode(rlp.encode([[[[[[[[[[]]]]]]]]]]))


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


@given(WEI)
def test_a_bump_is_at_least_an_eighth_and_never_nothing(fee: int) -> None:
    assert 8 * bumped(fee) >= 9 * fee
    assert 8 * (bumped(fee) - 1) < 9 * fee
    assert bumped(fee) > fee


@given(transactions, WEI, WEI, st.integers(1, 10**15))
def test_a_replacement_raises_both_fees_by_an_eighth_or_is_refused(
    old: Transaction, base: int, priority: int, most_fee: int
) -> None:
    fees = Fees(base=base, priority=priority)
    needed = replacement(old, fees, most_fee=1 << 60).max_fee
    if needed > most_fee:
        with pytest.raises(FeesCapped) as capped:
            replacement(old, fees, most_fee=most_fee)
        assert (capped.value.needed, capped.value.limit) == (needed, most_fee)
        return
    new = replacement(old, fees, most_fee=most_fee)
    assert new.nonce == old.nonce
    assert (new.to, new.data, new.value, new.gas) == (old.to, old.data, old.value, old.gas)
    assert 8 * new.max_fee >= 9 * old.max_fee
    assert 8 * new.priority_fee >= 9 * old.priority_fee
    assert new.priority_fee <= new.max_fee <= most_fee
    assert new.max_fee >= first_fees(fees)[0]


@given(WEI, WEI)
def test_a_first_attempt_outlasts_five_full_blocks(base: int, priority: int) -> None:
    most, tip = first_fees(Fees(base=base, priority=priority))
    after_five = base * 9**5 // 8**5
    assert most >= after_five + tip


def test_zero_is_the_empty_string() -> None:
    assert (rlp_integer(0), rlp_integer(128), rlp_integer(256)) == (b"", b"\x80", b"\x01\x00")
