"""Which keystore is meant: foundry's variables keep their meaning here."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.errors import BadInput, NoPassword
from app.cli.exits import Exit
from app.cli.program import app
from app.cli.wallets import WalletOptions, find_keystore, password_for
from app.client.errors import NoKeystore
from app.client.keystore import open_keystore


def empty(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_a_keystore_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = empty(tmp_path / "key.json")
    assert find_keystore(WalletOptions(home=tmp_path, keystore=path)) == path


def test_a_folder_with_one_keystore_means_that_one(tmp_path: Path) -> None:
    path = empty(tmp_path / "keys" / "only")
    assert find_keystore(WalletOptions(home=tmp_path, keystore=path.parent)) == path


def test_a_folder_with_several_keystores_needs_a_name(tmp_path: Path) -> None:
    one, _ = empty(tmp_path / "keys" / "one"), empty(tmp_path / "keys" / "two")
    with pytest.raises(NoKeystore, match="2 files"):
        find_keystore(WalletOptions(home=tmp_path, keystore=one.parent))
    named = WalletOptions(home=tmp_path, keystore=one.parent, account="one")
    assert find_keystore(named) == one


def test_an_account_lies_in_foundrys_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = empty(tmp_path / ".foundry" / "keystores" / "alice")
    assert find_keystore(WalletOptions(home=tmp_path, account="alice")) == path


def test_without_any_word_the_development_wallet_is_meant(tmp_path: Path) -> None:
    with pytest.raises(NoKeystore) as missing:
        find_keystore(WalletOptions(home=tmp_path))
    assert "offpeak wallet new" in missing.value.next_step
    path = empty(tmp_path / "wallet.json")
    (tmp_path / "wallet.password").write_text("secret\n")
    options = WalletOptions(home=tmp_path)
    assert find_keystore(options) == path
    assert password_for(path, options) == "secret"


def test_the_development_password_opens_no_other_keystore(tmp_path: Path) -> None:
    (tmp_path / "wallet.password").write_text("secret\n")
    other = empty(tmp_path / "other.json")
    with pytest.raises(NoPassword):
        password_for(other, WalletOptions(home=tmp_path, keystore=other))


def test_an_unreadable_password_file_is_named(tmp_path: Path) -> None:
    options = WalletOptions(home=tmp_path, password_file=tmp_path / "missing")
    with pytest.raises(BadInput, match="missing"):
        password_for(tmp_path / "any", options)


def test_a_new_wallet_is_a_private_keystore_that_foundrys_variables_find(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    path = tmp_path / "wallet"
    environ = {"ETH_KEYSTORE": str(path), "ETH_PASSWORD": str(password)}
    runner = CliRunner(env=environ)
    made = runner.invoke(app, ["wallet", "new", str(path), "--json"])
    assert made.exit_code == 0, made.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown = runner.invoke(app, ["wallet", "show", "--json"])
    assert shown.stdout == made.stdout
    assert len(open_keystore(path, "secret")) == 32
    again = runner.invoke(app, ["wallet", "new", str(path)])
    assert again.exit_code == Exit.WALLET
