"""Keystores are standard files that are never overwritten and never readable by others."""

import json
import stat
from pathlib import Path

import pytest

from app.client.errors import KeystoreExists, KeystoreUnreadable, WrongPassword
from app.client.keystore import QUICK_SCRYPT, keystore_address, open_keystore, write_keystore
from ledger.signing import address_of

KEY = b"\x07" * 32
PUBLISHED = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3,
}
"""The test vector of the Web3 Secret Storage Definition; its password is `testpassword`."""


def test_the_published_keystore_of_the_standard_opens(tmp_path: Path) -> None:
    path = tmp_path / "keystore"
    path.write_text(json.dumps(PUBLISHED))
    key = open_keystore(path, "testpassword")
    assert key.hex() == "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
    assert keystore_address(path) is None


def test_a_written_keystore_opens_again_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "one"
    write_keystore(path, KEY, "secret", scrypt_cost=QUICK_SCRYPT)
    assert open_keystore(path, "secret") == KEY
    assert keystore_address(path) == address_of(KEY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KEY.hex() not in path.read_text()


def test_a_keystore_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_text("something")
    with pytest.raises(KeystoreExists):
        write_keystore(path, KEY, "secret", scrypt_cost=QUICK_SCRYPT)
    assert path.read_text() == "something"


def test_a_wrong_password_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "one"
    write_keystore(path, KEY, "secret", scrypt_cost=QUICK_SCRYPT)
    with pytest.raises(WrongPassword):
        open_keystore(path, "wrong")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"version": 1}', '{"version": 3}', " " * 70_000, '{"version":3,"crypto":{}}'],
)
def test_what_is_no_keystore_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "one"
    path.write_text(content)
    with pytest.raises(KeystoreUnreadable):
        open_keystore(path, "secret")
