import os
import re
from pathlib import Path

import pytest
from eth_account import Account
from pydantic import ValidationError

from app.config import Settings
from app.config_rules import MissingKey

KEY = "1f" + "2e3d4c5b6a798897a6b5c4d3e2f10a" * 2 + "77"
DATABASE = "postgresql://offpeak_app:hunter2@db.internal:5432/offpeak"
PRODUCTION: dict[str, object] = {
    "environment": "production",
    "database_url": DATABASE,
    "public_url": "https://gateway.offpeak.net",
    "chain_id": 8453,
    "token_address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    "treasury_address": "0x" + "5a" * 20,
    "receipt_anchor_address": "0x" + "6b" * 20,
    "signing_key": KEY,
    "content_key": KEY,
    "log_origin": "gateway.offpeak.net/receipts",
}


@pytest.fixture(autouse=True)
def _no_outer_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OFFPEAK_")]:
        monkeypatch.delenv(name)


def settings(**given: object) -> Settings:
    return Settings.model_validate(given)


def test_a_database_is_all_that_development_needs() -> None:
    held = settings(database_url=DATABASE)
    assert held.is_development


def test_the_environment_is_read_with_its_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFPEAK_DATABASE_URL", DATABASE)
    monkeypatch.setenv("OFFPEAK_PORT", "9000")
    assert Settings().port == 9000


def test_complete_production_settings_are_taken() -> None:
    assert not settings(**PRODUCTION).is_development


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signing_key", None),
        ("content_key", None),
        ("signing_key", "11" * 32),
        ("signing_key", f"{1:064x}"),
        ("treasury_address", "0x" + "0" * 39 + "2"),
        ("token_address", "0x" + "0" * 40),
        ("chain_id", 31_337),
        ("checkpoint_key", "11" * 32),
        ("log_origin", "localhost/offpeak-receipts"),
        ("log_origin", "two words"),
        ("public_url", "http://gateway.offpeak.net"),
        ("public_url", "https://localhost"),
        ("public_url", "https://offpeak.example"),
    ],
)
def test_production_refuses_placeholders_and_development_keys(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        settings(**{**PRODUCTION, name: value})


def test_production_refuses_the_keys_that_development_chains_publish() -> None:
    Account.enable_unaudited_hdwallet_features()
    published = Account.from_mnemonic("test " * 11 + "junk").key.hex()
    with pytest.raises(ValidationError, match="development key"):
        settings(**{**PRODUCTION, "signing_key": published})


def test_no_secret_is_ever_shown(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"0x{KEY}\n")
    held = settings(
        database_url=DATABASE, signing_key_file=file, content_key=KEY, redis_url="redis://:pw@v/0"
    )
    shown = "\n".join([repr(held), str(held), *held.described().values()])
    assert not re.search(f"{KEY}|hunter2|:pw@", shown)
    assert held.described()["database_url"] == "postgresql://(hidden)@db.internal:5432/offpeak"
    assert held.described()["signing_key"] == "(set)"
    assert held.signing_key_bytes().hex() == KEY


def test_a_malformed_key_is_refused_without_showing_it() -> None:
    with pytest.raises(ValidationError, match="64 hex digits") as refusal:
        settings(database_url=DATABASE, signing_key=KEY[:-1])
    assert KEY[:-1] not in str(refusal.value)


def test_a_missing_secret_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="No such file"):
        settings(database_url=DATABASE, signing_key_file=tmp_path / "none")


def test_older_content_keys_follow_the_current_one() -> None:
    held = settings(database_url=DATABASE, content_key=f"{KEY}\n{'2b' * 31}2c\n")
    assert [key.hex() for key in held.content_keys()] == [KEY, "2b" * 31 + "2c"]


def test_a_key_that_is_needed_and_not_set_says_how_to_set_it() -> None:
    with pytest.raises(MissingKey, match="OFFPEAK_SIGNING_KEY_FILE"):
        settings(database_url=DATABASE).signing_key_bytes()


@pytest.mark.parametrize(
    "curve",
    [
        [(0, 1)],
        [(0, 1_000_000), (900_000, 2_000_000)],
        [(0, 2_000_000), (1_000_000, 1_000_000)],
        [(0, 1_000_000), (0, 1_000_000), (1_000_000, 1_000_000)],
    ],
)
def test_a_curve_that_falls_or_leaves_a_gap_is_refused(curve: list[tuple[int, int]]) -> None:
    with pytest.raises(ValidationError, match="price_curve"):
        settings(database_url=DATABASE, price_curve=curve)


def test_the_chains_urls_are_a_list_whose_keys_are_never_shown() -> None:
    urls = "https://a.node.net/v3/secret-1, https://user:secret-2@b.node.net/?key=secret-3,"
    held = settings(database_url=DATABASE, rpc_urls=urls)
    assert held.rpc_url_list == [url.strip() for url in urls.split(",")[:2]]
    assert held.described()["rpc_urls"] == "a.node.net, b.node.net"
    assert "secret" not in repr(held) + str(held.described())
    assert settings(database_url=DATABASE).rpc_url_list == []


@pytest.mark.parametrize("url", ["ftp://node.net", "node.net:8545", "https://"])
def test_a_chain_url_that_is_none_is_refused_by_its_place(url: str) -> None:
    with pytest.raises(ValidationError, match=r"rpc_urls\[1\] is not an http") as refused:
        settings(database_url=DATABASE, rpc_urls=f"http://localhost:8545,{url}")
    assert "localhost" not in str(refused.value)


def test_production_asks_a_chain_over_tls_or_on_its_own_machine() -> None:
    settings(**PRODUCTION, rpc_urls="https://node.net/key,http://127.0.0.1:8545")
    with pytest.raises(ValidationError, match=r"rpc_urls\[0\] must be https"):
        settings(**PRODUCTION, rpc_urls="http://10.0.0.5:8545")


@pytest.mark.parametrize(
    "given",
    [
        {"operator_keystore": "/k.json"},
        {"anchor_password_file": "/p.txt"},
        {
            "operator_keystore": "/k.json",
            "operator_password_file": "/p.txt",
            "operator_signer_command": "sign",
        },
    ],
)
def test_a_chain_key_is_a_keystore_with_its_password_or_a_command(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=r"belong together|only one may be set"):
        settings(database_url=DATABASE, **given)


def test_the_treasurys_database_falls_back_to_the_operators() -> None:
    assert settings(database_url=DATABASE).treasury_url == DATABASE
    held = settings(database_url=DATABASE, treasury_database_url="postgresql://treasury@db/x")
    assert held.treasury_url == "postgresql://treasury@db/x"
