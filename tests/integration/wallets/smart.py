"""Contract wallets on a development chain: deployed, to come, and an account with EIP-7702 code."""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from eth_abi.abi import encode
from eth_account import Account

from app.chain.abi import Function
from app.wallets.probe import WRAPPED
from ledger.encoding import Address, checksum_address, parse_address
from ledger.signing import SigningKey
from tests.chain import ALICE, TEST_KEYS, TestChain, address_of_key

ARTIFACTS = Path(__file__).parents[2] / "contracts_artifacts"
SET_MODE = Function("setMode(uint8)")
DEPLOY = Function("deploy(address,bytes32)(address)")
ADDRESS_OF = Function("addressOf(address,bytes32)(address)")


class Mode(IntEnum):
    """How the wallet of `contracts/test/support/SmartWallet.sol` behaves."""

    HONEST = 0
    REFUSING = 1
    REVERTING = 2
    EXPENSIVE = 3
    SHORT = 4
    LONG = 5
    TRUSTING = 6


def new_key() -> SigningKey:
    return SigningKey(secrets.token_bytes(32))


@dataclass(frozen=True)
class SmartWallet:
    """A wallet that is deployed; its owner is a key."""

    chain: TestChain
    address: Address
    owner: SigningKey

    def behave(self, mode: Mode) -> None:
        transact(self.chain, SET_MODE.data(mode), to=self.address)


def bytecode(name: str) -> bytes:
    text = (ARTIFACTS / f"{name}.json").read_text("utf-8")
    return bytes.fromhex(json.loads(text)["bytecode"][2:])


def create(chain: TestChain, name: str, types: Sequence[str] = (), *given: object) -> Address:
    """Deploy a test contract from an account that anvil unlocks."""
    receipt = transact(chain, bytecode(name) + encode(list(types), given))
    return parse_address(receipt["contractAddress"])


def transact(chain: TestChain, data: bytes, *, to: Address | None = None) -> Any:
    """The receipt of a transaction of an account that anvil unlocks."""
    asked = {"from": address_of_key(ALICE), "data": "0x" + data.hex()}
    return mined(chain, chain.ask("eth_sendTransaction", asked | ({"to": to} if to else {})))


def mined(chain: TestChain, sent: object) -> Any:
    """The receipt, at the latest ten seconds after it was sent."""
    until = time.monotonic() + 10
    while (receipt := chain.ask("eth_getTransactionReceipt", sent)) is None:
        assert time.monotonic() < until
    assert isinstance(receipt, dict)
    assert receipt["status"] == "0x1"
    return receipt


def deployed(chain: TestChain, owner: SigningKey | None = None) -> SmartWallet:
    key = owner or new_key()
    return SmartWallet(chain, create(chain, "SmartWallet", ["address"], key.address), key)


@dataclass(frozen=True)
class Coming:
    """A wallet at an address that only its factory call makes."""

    chain: TestChain
    factory: Address
    salt: bytes
    owner: SigningKey

    @property
    def address(self) -> Address:
        call = {
            "to": self.factory,
            "data": "0x" + ADDRESS_OF.data(self.owner.address, self.salt).hex(),
        }
        answer = bytes.fromhex(str(self.chain.ask("eth_call", call, "latest"))[2:])
        return Address(ADDRESS_OF.text(answer))

    def wrapped(self, signature: bytes) -> bytes:
        """The signature as ERC-6492 wraps it."""
        call = DEPLOY.data(self.owner.address, self.salt)
        types = ["address", "bytes", "bytes"]
        return encode(types, [self.factory, call, signature]) + WRAPPED

    def deploy(self) -> None:
        transact(self.chain, DEPLOY.data(self.owner.address, self.salt), to=self.factory)


def coming(chain: TestChain) -> Coming:
    factory = create(chain, "SmartWalletFactory")
    return Coming(chain, factory, secrets.token_bytes(32), new_key())


def delegate(chain: TestChain, key: SigningKey, private: bytes, code: Address) -> None:
    """Give an account the code of a contract (EIP-7702); another account pays the gas."""
    authorization = Account.sign_authorization(
        {"chainId": 31_337, "address": checksum_address(code), "nonce": 0}, private
    )
    nonce = int(str(chain.ask("eth_getTransactionCount", address_of_key(ALICE), "latest")), 16)
    signed = Account.sign_transaction(
        {
            "type": 4,
            "chainId": 31_337,
            "nonce": nonce,
            "to": checksum_address(address_of_key(ALICE)),
            "value": 0,
            "gas": 200_000,
            "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 10**9,
            "data": "0x",
            "authorizationList": [authorization],
        },
        TEST_KEYS[ALICE],
    )
    sent = chain.ask("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())
    mined(chain, sent)
    assert str(chain.ask("eth_getCode", key.address, "latest")).startswith("0xef0100")
