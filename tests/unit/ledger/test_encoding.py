import json
from uuid import UUID

import pytest
import rfc8785
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from ledger.encoding import (
    Address,
    Domain,
    address_word,
    canonical_json,
    checksum_address,
    domain_separator,
    parse_address,
    uuid_bytes32,
    uuid_from_bytes32,
)
from ledger.errors import BadAddress, BadLength, MalformedTypedData, NotCanonical

CONTRACT = Address("0x5fbdb2315678afecb367f032d93f642f64180aa3")
addresses = st.binary(min_size=20, max_size=20).map(lambda raw: Address("0x" + raw.hex()))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(addresses)
def test_an_address_survives_the_wire(address: Address) -> None:
    shown = checksum_address(address)
    assert shown == to_checksum_address(address)
    assert parse_address(shown) == address
    assert parse_address(address) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        CONTRACT[2:],
        "0X" + CONTRACT[2:],
        CONTRACT[:-1],
        CONTRACT + "0",
        CONTRACT + "\n",
        " " + CONTRACT,
        "0x" + "g" * 40,
        "0x" + CONTRACT[2:].upper(),
        "0x5Fbdb2315678afecb367f032d93f642f64180aa3",  # one letter of EIP-55 too few
        None,
        int(CONTRACT, 16),
    ],
)
def test_an_address_is_lower_case_or_eip55_and_nothing_else(text: object) -> None:
    with pytest.raises(BadAddress):
        parse_address(text)


@pytest.mark.parametrize("text", ["0x12", "0x" + "zz" * 20, "", "0x" + "é" * 40])
def test_a_word_is_made_of_parsed_addresses_only(text: str) -> None:
    with pytest.raises(BadAddress):
        address_word(Address(text))


@given(st.uuids())
def test_an_id_is_left_padded_into_bytes32(value: UUID) -> None:
    assert uuid_bytes32(value) == bytes(16) + value.bytes
    assert uuid_from_bytes32(uuid_bytes32(value)) == value


@pytest.mark.parametrize("word", [bytes(31), bytes(33), b"\1" + bytes(31), b"\1" * 32])
def test_a_word_that_is_no_padded_id_is_refused(word: bytes) -> None:
    with pytest.raises(BadLength):
        uuid_from_bytes32(word)


def test_the_domain_is_part_of_what_is_signed() -> None:
    domain = Domain("OFFPEAK", "1", 31337, CONTRACT)
    others = [
        Domain("OFFPEAK UsageRecord", "1", 31337, CONTRACT),
        Domain("OFFPEAK", "2", 31337, CONTRACT),
        Domain("OFFPEAK", "1", 1, CONTRACT),
        Domain("OFFPEAK", "1", 31337, Address("0x" + "11" * 20)),
    ]
    assert len({domain_separator(each) for each in [domain, *others]}) == 5


@pytest.mark.parametrize("chain_id", [-1, 0, 2**53, 2**256])
def test_a_chain_id_that_a_wallet_would_mangle_is_refused(chain_id: int) -> None:
    with pytest.raises(MalformedTypedData) as refusal:
        domain_separator(Domain("OFFPEAK", "1", chain_id, CONTRACT))
    assert refusal.value.field == "chainId"


@pytest.mark.parametrize("field", ["name", "version"])
def test_a_domain_with_a_lone_surrogate_is_refused(field: str) -> None:
    texts = {"name": "OFFPEAK", "version": "1", field: "\ud800"}
    with pytest.raises(MalformedTypedData) as refusal:
        domain_separator(Domain(texts["name"], texts["version"], 1, CONTRACT))
    assert refusal.value.field == field


def as_ecmascript_reads(digits: str) -> int | float:
    number = int(digits)
    return number if abs(number) < 2**53 else float(number)


@given(json_values)
def test_canonical_json_is_json_of_the_same_value(value: object) -> None:
    data = canonical_json(value)
    read = json.loads(data, parse_int=as_ecmascript_reads)
    assert read == value
    assert canonical_json(read) == data


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda held: (
        st.lists(held, max_size=4) | st.dictionaries(st.text(max_size=6), held, max_size=4)
    ),
    max_leaves=12,
)


@given(plain_values)
def test_the_fast_form_of_values_without_fractions_is_rfc_8785s(value: object) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


def test_canonical_json_sorts_keys_by_utf16_and_escapes_as_rfc_8785_says() -> None:
    # The example of RFC 8785, section 3.2.3: an astral key sorts before U+FB33.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    text = canonical_json(dict.fromkeys(keys, 0)).decode()
    assert list(json.loads(text)) == [
        "\r",
        "1",
        "\u0080",
        "\u00f6",
        "\u20ac",
        "\U0001f600",
        "\ufb33",
    ]
    assert canonical_json({"t": 'é\x00"\\/\n'}) == '{"t":"é\\u0000\\"\\\\/\\n"}'.encode()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (333333333.33333329, b"333333333.3333333"),
        (1e30, b"1e+30"),
        (4.50, b"4.5"),
        (2e-3, b"0.002"),
        (1e-27, b"1e-27"),
        (-0.0, b"0"),
        (1e21, b"1e+21"),
        (1e20, b"100000000000000000000"),
        (1e-6, b"0.000001"),
        (1e-7, b"1e-7"),
    ],
)
def test_canonical_json_writes_numbers_as_ecmascript_does(number: float, text: bytes) -> None:
    assert canonical_json(number) == text


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        {"model": "a\udfffb"},
        {"\udc00": 1},
        ["ok", {"deep": ["\ud83d"]}],
        2**53,
        -(2**53),
        {"n": 2**64},
        float("nan"),
        float("inf"),
        {1: "a"},
        b"bytes",
        {"set": {1}},
    ],
    ids=repr,
)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(NotCanonical):
        canonical_json(value)


def test_nesting_without_end_is_refused_with_a_typed_error() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotCanonical):
        canonical_json(value)
