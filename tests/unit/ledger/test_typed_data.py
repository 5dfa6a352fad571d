"""Each rule of the wire format, on each message type that it touches."""

import dataclasses
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.authorization import RequestAuthorization
from ledger.encoding import Address, canonical_json
from ledger.errors import BadAddress, MalformedTypedData
from ledger.money import Nano
from ledger.typed_data import MAX_TEXT_BYTES, Field, TypedMessage
from ledger.usage import Outcome, UsageRecord
from tests.vectors.eip712_messages import AUTHORIZATION, OFFPEAK, PLAIN, RECORD, TOKEN

MESSAGES = [case.message for case in PLAIN]
FIELDS = [(message, field) for message in MESSAGES for field in message.TYPE.fields]


def fields_of(prefix: str) -> list[tuple[TypedMessage, Field]]:
    """Every field, of every message, whose Solidity type begins with `prefix`."""
    chosen = [pair for pair in FIELDS if pair[1].solidity.startswith(prefix)]
    assert chosen
    return chosen


def refuse(message: TypedMessage, field: Field, value: object) -> MalformedTypedData:
    altered: dict[str, object] = {**message.message(), field.name: value}
    with pytest.raises(MalformedTypedData) as refusal:
        message.parse(altered)
    assert refusal.value.field == field.name
    assert refusal.value.code == "malformed-typed-data"
    return refusal.value


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.TYPE.name)
def test_the_dataclass_lists_the_fields_of_its_type_in_order(message: TypedMessage) -> None:
    attributes = [field.attribute for field in message.TYPE.fields]
    assert list(inspect.signature(type(message)).parameters) == attributes
    assert type(message).__name__ == message.TYPE.name


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.TYPE.name)
def test_every_message_survives_the_wire(message: TypedMessage) -> None:
    assert message.parse(message.message()) == message


@given(
    st.text(max_size=60),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**256 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(min_size=32, max_size=32),
)
def test_any_authorization_survives_the_wire(
    model: str, tokens: int, charge: int, deadline: int, nonce: bytes
) -> None:
    authorization = dataclasses.replace(
        AUTHORIZATION,
        model=model,
        max_output_tokens=tokens,
        max_charge_nano=Nano(charge),
        deadline=deadline,
        nonce=nonce,
    )
    parsed = RequestAuthorization.parse(authorization.message())
    assert parsed == authorization
    assert parsed.digest(OFFPEAK) == authorization.digest(OFFPEAK)


def test_a_missing_key_is_refused_by_name() -> None:
    for message, field in fields_of(""):
        altered: dict[str, object] = dict(message.message())
        del altered[field.name]
        with pytest.raises(MalformedTypedData) as refusal:
            message.parse(altered)
        assert (refusal.value.field, refusal.value.reason) == (field.name, "missing")


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.TYPE.name)
@pytest.mark.parametrize("key", ["extra", "", "PAYER", "__proto__", "\ud800"])
def test_an_extra_key_is_refused(message: TypedMessage, key: str) -> None:
    with pytest.raises(MalformedTypedData) as refusal:
        message.parse({**message.message(), key: "0"})
    assert refusal.value.reason.startswith("not a member of")
    str(refusal.value).encode()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "007",
        "00",
        "+1",
        "-1",
        "-0",
        " 1",
        "1 ",
        "1\n",
        "1e3",
        "1.0",
        "1_0",
        "0x1",
        "1n",
        "\u0661",
        "9" * 79,
        "9" * 5000,
        1,
        1.0,
        True,
        None,
        ["1"],
    ],
    ids=lambda value: repr(value)[:20],
)
def test_an_integer_is_a_canonical_decimal_string(value: object) -> None:
    for message, field in fields_of("uint"):
        assert refuse(message, field, value).reason


def test_an_integer_fits_its_solidity_width() -> None:
    for message, field in fields_of("uint"):
        bits = int(field.solidity.removeprefix("uint"))
        assert refuse(message, field, str(2**bits)).reason == f"out of range for uint{bits}"
        if field.name != "outcome":
            top = {**message.message(), field.name: str(2**bits - 1)}
            assert getattr(message.parse(top), field.attribute) == 2**bits - 1


def test_integers_above_2_to_the_53_are_kept_to_the_last_digit() -> None:
    for message, field in fields_of("uint64"):
        parsed = message.parse({**message.message(), field.name: str(2**53 + 1)})
        assert getattr(parsed, field.attribute) == 2**53 + 1
        assert parsed.message()[field.name] == "9007199254740993"
        even = message.parse({**message.message(), field.name: str(2**53)})
        assert parsed.struct_hash() != even.struct_hash()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "0x",
        "00" * 32,
        "0X" + "00" * 32,
        "0x" + "00" * 31,
        "0x" + "00" * 33,
        "0x" + "0" * 63,
        "0x" + "zz" * 32,
        "0x" + "00" * 32 + "\n",
        " 0x" + "00" * 32,
        "0x" + "\uff10" * 64,
        0,
        None,
        bytes(32),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_bytes32_is_0x_and_64_hex_digits(value: object) -> None:
    for message, field in fields_of("bytes32"):
        assert refuse(message, field, value).reason


def test_the_case_of_hex_digits_does_not_change_a_digest() -> None:
    message = AUTHORIZATION.message()
    message["nonce"] = "0x" + message["nonce"][2:].upper()
    message["payer"] = message["payer"].lower()
    assert RequestAuthorization.parse(message).digest(OFFPEAK) == AUTHORIZATION.digest(OFFPEAK)


@pytest.mark.parametrize(
    "value",
    ["", "0x", TOKEN[2:], "0X" + TOKEN[2:], TOKEN[:-1], "0x" + TOKEN[2:].upper(), 0, None],
    ids=lambda value: repr(value)[:20],
)
def test_an_address_is_lower_case_or_eip55(value: object) -> None:
    for message, field in fields_of("address"):
        assert refuse(message, field, value).reason


def test_a_wrong_checksum_is_refused() -> None:
    for message, field in fields_of("address"):
        shown = message.message()[field.name]
        letter = next(index for index in range(2, 42) if shown[index].isalpha())
        wrong = shown[:letter] + shown[letter].swapcase() + shown[letter + 1 :]
        assert "EIP-55" in refuse(message, field, wrong).reason


@pytest.mark.parametrize(
    "value", ["\ud800", "a\udfff", "\udc00\ud800", None, 1, b"text", ["text"]], ids=ascii
)
def test_a_text_is_unicode_without_lone_surrogates(value: object) -> None:
    for message, field in fields_of("string"):
        assert refuse(message, field, value).reason


def test_a_text_has_a_limit_in_bytes() -> None:
    for message, field in fields_of("string"):
        longest = "é" * (MAX_TEXT_BYTES // 2)
        assert message.parse({**message.message(), field.name: longest}).struct_hash()
        refuse(message, field, longest + "x")


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("model", "\ud800"),
        ("model", "x" * (MAX_TEXT_BYTES + 1)),
        ("nonce", bytes(31)),
        ("max_output_tokens", 2**32),
        ("max_output_tokens", -1),
        ("max_charge_nano", 2**256),
        ("deadline", 2**64),
    ],
    ids=str,
)
def test_a_value_made_in_code_is_held_to_the_same_rules_when_hashed(
    attribute: str, value: object
) -> None:
    changes: dict[str, object] = {attribute: value}
    altered: RequestAuthorization = dataclasses.replace(AUTHORIZATION, **changes)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(MalformedTypedData):
        altered.digest(OFFPEAK)


def test_an_address_made_in_code_must_be_one() -> None:
    altered = dataclasses.replace(AUTHORIZATION, payer=Address("0x12"))
    with pytest.raises(BadAddress):
        altered.digest(OFFPEAK)


@pytest.mark.parametrize("outcome", ["0", "5", "255"])
def test_an_outcome_is_one_of_four(outcome: str) -> None:
    with pytest.raises(MalformedTypedData) as refusal:
        UsageRecord.parse({**RECORD.message(), "outcome": outcome})
    assert refusal.value.field == "outcome"


def test_a_parsed_outcome_is_named() -> None:
    assert UsageRecord.parse(RECORD.message()).outcome is Outcome.COMPLETED
    assert RECORD.message()["outcome"] == "1"


def test_every_field_is_part_of_the_digest() -> None:
    for message, field in fields_of(""):
        other = {
            "address": "0x" + "77" * 20,
            "bytes32": "0x" + "77" * 32,
            "string": "another",
        }.get(field.solidity, "4" if field.name == "outcome" else "77")
        altered = message.parse({**message.message(), field.name: other})
        assert altered.struct_hash() != message.struct_hash()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.TYPE.name)
def test_the_fast_canonical_form_is_the_one_of_rfc_8785(message: TypedMessage) -> None:
    assert message.canonical() == canonical_json(message.message())


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=100))
def test_any_text_has_one_canonical_form(text: str) -> None:
    message = dataclasses.replace(AUTHORIZATION, model=text)
    assert message.canonical() == canonical_json(message.message())
