"""The pages on policy and checking say what the code does; their commands run as they stand."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from ledger.note import COSIGNATURE, ED25519
from ledger.verify.cli import main
from ledger.verify.policy import MAX_MEMBERS, MAX_NAMES, MAX_POLICY_BYTES, parse_policy
from tests.receipt_world import AUTHORIZATIONS, RECORDS
from tests.unit.ledger.verify.checking import subject, world
from tests.unit.ledger.verify.nodes import anchoring, honest, serving
from tests.unit.ledger.verify.running import ROOT, make_folder

__all__ = ["make_folder"]

POLICY = (ROOT / "docs" / "spec" / "policy.md").read_text("utf-8")
HOW_TO = (ROOT / "docs" / "how-to" / "check-a-receipt.md").read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def test_the_example_is_a_policy_that_says_what_its_comments_say() -> None:
    found = parse_policy(blocks(POLICY, "policy")[0].encode())
    assert (found.records, found.authorizations) == (RECORDS, AUTHORIZATIONS)
    assert found.log_keys == (world().signer(0).verifier,)
    assert found.log_url == "https://api.example"
    assert {key.kind for key in found.witnesses.values()} == {COSIGNATURE}
    assert found.log_keys[0].kind == ED25519
    witnesses = list(found.witnesses.values())
    assert found.has_quorum(witnesses[1:])
    assert not found.has_quorum(witnesses[:1])
    assert found.counts_at(str(found.log_keys[0]), 3)
    assert not found.counts_at(str(found.log_keys[0]), 4)


def test_the_limits_are_the_codes() -> None:
    for limit in (
        f"{MAX_POLICY_BYTES:,} bytes",
        f"{MAX_NAMES} witnesses",
        f"{MAX_MEMBERS} members",
    ):
        assert limit in POLICY


def test_every_statement_of_the_table_is_known_and_every_known_one_is_there() -> None:
    listed = set(re.findall(r"^\| `([a-z-]+) [A-Z]", POLICY, re.MULTILINE))
    source = (ROOT / "ledger" / "verify" / "policy.py").read_text("utf-8")
    assert listed == set(re.findall(r'^ +"([a-z-]+)": \(self\._', source, re.MULTILINE))


def test_the_how_to_s_policy_is_enough() -> None:
    assert blocks(HOW_TO, "policy")[0] == world().policy()


def commands() -> list[str]:
    lines = [line for block in blocks(HOW_TO, "console") for line in block.splitlines()]
    return [line for line in lines if line.startswith("offpeak-verify ")]


def test_every_command_of_the_how_to_ends_verified(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "all").rename(folder / "receipts")
    (folder / "request.json").write_bytes(subject().request)
    hashes = ["0x" + each.hex() for each in world().consistency(3, 5)]
    proof = json.dumps({"from": "3", "to": "5", "proof": hashes})
    (folder / "proof.json").write_text(proof)
    monkeypatch.chdir(folder)
    assert len(commands()) == 7
    for line in commands():
        if "--rpc" in line:
            with serving(honest(anchoring(world().head()))) as url:
                given = shlex.split(line.replace("https://rpc.example", url))
                assert main(given[1:]) == 0, line
            continue
        if "--consistency" in line:
            Path("last.checkpoint").write_bytes(world().checkpoint(3))
        assert main(shlex.split(line)[1:]) == 0, line
    assert "VERIFIED (exit 0)" in capsys.readouterr().out


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"]["offpeak-verify"] == "ledger.verify.cli:main"
