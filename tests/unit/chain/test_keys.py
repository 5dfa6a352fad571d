"""Chain keys: keystores of every common maker open, and a signer is believed nothing."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account

from app.chain.errors import KeyRefused
from app.chain.keys import CommandKey, KeystoreKey, open_chain_key, open_keystore_key
from app.chain.transaction import Transaction
from ledger.encoding import Address
from ledger.signing import SigningKey
from tests.waiting import has_ended, wait_until

TEST_KEY = bytes.fromhex("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
"""TEST KEY: the second of those that anvil publishes; worth nothing anywhere."""
ADDRESS = SigningKey(TEST_KEY).address
PASSWORD = "a test pass phrase"
MADE_BY_FOUNDRY = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "9b6f1f6c60f71d113e155b798536fc78"},
        "ciphertext": "4f3525e8b3dbbc8807bda10b729924a714a665f5a8944d5ea4e300c7e4f0f3c0",
        "kdf": "scrypt",
        "kdfparams": {
            "dklen": 32,
            "n": 8192,
            "p": 1,
            "r": 8,
            "salt": "56caac1ad26c429499c5ee2c9619fe1b5e516c460fc546b757823cb23bc78b87",
        },
        "mac": "37756a82344aed9f46e988a0e81ee42f87e6dc69718041cdd460d5c1b2d40cfb",
    },
    "id": "3e42bcd0-3a35-41c4-b026-ddac1da1f859",
    "version": 3,
}
"""`cast wallet import` (foundry 1.7.1) of the test key."""
TRANSACTION = Transaction(
    chain_id=31_337,
    nonce=7,
    to=Address("0x" + "ab" * 20),
    data=b"\x01\x02",
    gas=50_000,
    max_fee=9,
    priority_fee=1,
)
SIGNER = """#!/bin/sh
request=$(cat)
case "$request" in
  *'"sign"'*) {answer} ;;
  *) echo {address} ;;
esac
"""
PAGE = Path(__file__).parents[3] / "docs" / "spec" / "signer-command.md"


def files(folder: Path, keystore: object, password: str = PASSWORD) -> tuple[Path, Path]:
    """A keystore file and its password's."""
    paths = folder / "keystore.json", folder / "password.txt"
    paths[0].write_text(json.dumps(keystore))
    paths[1].write_text(password + "\n")
    return paths


def signer(folder: Path, answer: str) -> str:
    """The command of a signer that answers what it is to sign with a line of shell."""
    path = folder / "signer.sh"
    path.write_text(SIGNER.format(answer=answer, address=ADDRESS))
    path.chmod(0o700)
    return str(path)


def echo(transaction: Transaction, key: bytes = TEST_KEY) -> str:
    """The line that answers with this transaction, signed."""
    signed = transaction.signed(SigningKey(key).sign(transaction.digest()))
    return f"echo 0x{signed.raw.hex()}"


async def opened(command: str) -> CommandKey:
    found = await open_chain_key("operator", keystore=None, password_file=None, command=command)
    assert isinstance(found, CommandKey)
    return found


@pytest.mark.parametrize(
    "keystore",
    [
        MADE_BY_FOUNDRY,
        Account.encrypt(TEST_KEY, PASSWORD, kdf="scrypt", iterations=4_096),
        Account.encrypt(TEST_KEY, PASSWORD, kdf="pbkdf2", iterations=10),
    ],
    ids=["foundry", "eth-account-scrypt", "eth-account-pbkdf2"],
)
async def test_a_keystore_of_each_maker_opens_and_signs(tmp_path: Path, keystore: object) -> None:
    paths = files(tmp_path, keystore)
    key = await open_chain_key("operator", keystore=paths[0], password_file=paths[1], command="")
    assert isinstance(key, KeystoreKey)
    assert key.address == ADDRESS
    signed = await key.sign(TRANSACTION)
    assert (signed.sender, signed.transaction) == (ADDRESS, TRANSACTION)


async def test_no_setting_is_no_key() -> None:
    nothing = await open_chain_key("anchor", keystore=None, password_file=None, command="")
    assert nothing is None


@pytest.mark.parametrize(
    ("keystore", "password"),
    [
        (MADE_BY_FOUNDRY, "wrong"),
        (MADE_BY_FOUNDRY, ""),
        ({**MADE_BY_FOUNDRY, "version": 1}, PASSWORD),
        ({"version": 3}, PASSWORD),
        ({**MADE_BY_FOUNDRY, "crypto": {}}, PASSWORD),
        ({**MADE_BY_FOUNDRY, "crypto": None}, PASSWORD),
        ([], PASSWORD),
        ("text", PASSWORD),
    ],
)
def test_a_keystore_that_does_not_open_says_which_and_shows_nothing(
    tmp_path: Path, keystore: object, password: str
) -> None:
    paths = files(tmp_path, keystore, password)
    with pytest.raises(KeyRefused, match="operator key") as refused:
        open_keystore_key("operator", *paths)
    assert str(paths[0]) in str(refused.value)
    if password:
        assert password not in str(refused.value)
    assert refused.value.__cause__ is None


def test_files_that_are_missing_or_far_too_long_are_named(tmp_path: Path) -> None:
    paths = files(tmp_path, MADE_BY_FOUNDRY)
    with pytest.raises(KeyRefused, match="No such file"):
        open_keystore_key("operator", tmp_path / "none", paths[1])
    paths[0].write_bytes(bytes(100_000))
    with pytest.raises(KeyRefused, match="is over 65536 bytes"):
        open_keystore_key("operator", *paths)


async def test_a_key_shows_its_address_only(tmp_path: Path) -> None:
    for key in (KeystoreKey(TEST_KEY), await opened(signer(tmp_path, ":"))):
        assert ADDRESS in repr(key)
        assert TEST_KEY.hex() not in repr(key)


async def test_the_program_of_the_page_signs_exactly_what_it_is_given(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8").partition("## A program")[2]
    program, key_file = tmp_path / "signer.py", tmp_path / "operator.key"
    program.write_text(page.split("```")[1])
    key_file.write_text(TEST_KEY.hex() + "\n")
    key = await opened(f"{sys.executable} '{program}' '{key_file}'")
    assert key.address == ADDRESS
    signed = await key.sign(TRANSACTION)
    assert signed == await KeystoreKey(TEST_KEY).sign(TRANSACTION)


@pytest.mark.parametrize(
    "changed",
    [
        replace(TRANSACTION, nonce=8),
        replace(TRANSACTION, chain_id=1),
        replace(TRANSACTION, value=1),
        replace(TRANSACTION, gas=50_001),
        replace(TRANSACTION, to=None),
        replace(TRANSACTION, data=b""),
        replace(TRANSACTION, max_fee=10),
        replace(TRANSACTION, priority_fee=0),
    ],
    ids=["nonce", "chain", "value", "gas", "to", "data", "max-fee", "priority-fee"],
)
async def test_a_signer_that_changes_a_field_is_refused(
    tmp_path: Path, changed: Transaction
) -> None:
    key = await opened(signer(tmp_path, echo(changed)))
    with pytest.raises(KeyRefused, match="changed the transaction"):
        await key.sign(TRANSACTION)


async def test_a_signer_does_not_get_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFPEAK_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("SIGNER_PROFILE", "its own")
    answer = f'env | grep -q OFFPEAK_ || [ "$SIGNER_PROFILE" != "its own" ] || {echo(TRANSACTION)}'
    key = await opened(signer(tmp_path, answer))
    assert (await key.sign(TRANSACTION)).transaction == TRANSACTION


async def test_a_signer_that_signs_with_another_key_is_refused(tmp_path: Path) -> None:
    key = await opened(signer(tmp_path, echo(TRANSACTION, b"\x07" * 32)))
    with pytest.raises(KeyRefused, match="signed by"):
        await key.sign(TRANSACTION)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("exit 3", "status 3"),
        ("echo 0x02c0", "the signer's answer"),
        ("echo sorry", "the signer's answer"),
        (":", "the signer's answer"),
        ("head -c 9000000 /dev/zero", "status -9"),
        ("head -c 100 /dev/urandom", "the signer's answer"),
    ],
)
async def test_any_other_answer_of_a_signer_is_refused(
    tmp_path: Path, answer: str, reason: str
) -> None:
    key = await opened(signer(tmp_path, answer))
    with pytest.raises(KeyRefused, match=reason):
        await key.sign(TRANSACTION)


async def test_a_signer_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = signer(tmp_path, f"sleep 60 & echo $! > '{pid_file}'; wait")
    key = CommandKey("operator", [command], ADDRESS, seconds=0.5)
    with pytest.raises(KeyRefused, match=r"did not answer within 0.5 s"):
        await key.sign(TRANSACTION)
    wait_until(lambda: has_ended(int(pid_file.read_text())))


@pytest.mark.parametrize(
    "command", ["/no/such/program", "'unbalanced", f"{sys.executable} -c pass"]
)
async def test_a_command_that_names_no_address_is_refused(command: str) -> None:
    with pytest.raises(KeyRefused):
        await opened(command)
