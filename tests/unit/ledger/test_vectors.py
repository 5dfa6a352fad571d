"""`tests/vectors/eip712.json` against our code and against eth-account."""

import json
from collections.abc import Mapping
from typing import TypedDict

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from ledger import authorization, quote, token_messages, usage
from ledger.encoding import Domain, domain_separator, parse_address
from ledger.signing import address_of, recover, sign_digest
from ledger.typed_data import TypedMessage
from tests.vectors.eip712_messages import PLAIN
from tests.vectors.make_eip712 import PATH, render, vector_key


class DomainMember(TypedDict):
    name: str
    version: str
    chainId: int
    verifyingContract: str


class Vector(TypedDict):
    type: str
    name: str
    domain: DomainMember
    message: Mapping[str, str]
    domain_separator: str
    struct_hash: str
    digest: str
    signature: str


FILE = json.loads(PATH.read_text(encoding="utf-8"))
VECTORS: list[Vector] = FILE["vectors"]
CLASSES = {case.message.TYPE.name: type(case.message) for case in PLAIN}
KEY = vector_key()

every_vector = pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: f"{vector['type']}-{vector['name']}"
)


def test_the_vectors_are_as_the_script_writes_them() -> None:
    assert PATH.read_text(encoding="utf-8") == render()


def test_every_type_that_we_have_is_in_the_vectors() -> None:
    defined = {
        name
        for module in (authorization, quote, token_messages, usage)
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, TypedMessage) and each is not TypedMessage
    }
    assert set(FILE["types"]) == defined == {vector["type"] for vector in VECTORS}
    assert len(defined) == 11


@every_vector
def test_we_compute_what_the_vector_says(vector: Vector) -> None:
    member = vector["domain"]
    contract = parse_address(member["verifyingContract"])
    domain = Domain(member["name"], member["version"], member["chainId"], contract)
    message = CLASSES[vector["type"]].parse(vector["message"])
    digest = message.digest(domain)
    assert message.message() == vector["message"]
    assert "0x" + domain_separator(domain).hex() == vector["domain_separator"]
    assert "0x" + message.struct_hash().hex() == vector["struct_hash"]
    assert "0x" + digest.hex() == vector["digest"]
    assert "0x" + sign_digest(KEY, digest).hex() == vector["signature"]
    assert recover(digest, bytes.fromhex(vector["signature"][2:])) == address_of(KEY)


@every_vector
def test_eth_account_agrees(vector: Vector) -> None:
    member = vector["domain"]
    contract = parse_address(member["verifyingContract"])
    domain = Domain(member["name"], member["version"], member["chainId"], contract)
    message = CLASSES[vector["type"]].parse(vector["message"])
    signable = encode_typed_data(full_message=message.typed_data(domain))
    signed = Account.sign_message(signable, KEY)
    assert "0x" + signable.header.hex() == vector["domain_separator"]
    assert "0x" + signable.body.hex() == vector["struct_hash"]
    assert "0x" + signed.message_hash.hex() == vector["digest"]
    assert "0x" + signed.signature.hex() == vector["signature"]
    assert Account.recover_message(signable, signature=vector["signature"]) == FILE["signer"]
