"""`--rpc`: what nodes answer over HTTP, and every way in which they may not."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger.verify.rpc import MAX_ANSWER_BYTES
from tests.unit.ledger.verify.checking import good, world
from tests.unit.ledger.verify.nodes import Stated, anchoring, honest, serving
from tests.unit.ledger.verify.running import make_folder, verify

__all__ = ["make_folder"]

DEMANDED = ("--require", "anchored", "--json")


@pytest.fixture(name="receipt")
def make_receipt(folder: Path) -> Path:
    path = folder / "anchored.json"
    path.write_bytes(replace(good(), anchor=world().anchor()).encode())
    return path


def here() -> Stated:
    return anchoring(world().head())


def test_a_node_confirms_the_anchor_and_its_key_is_not_shown(folder: Path, receipt: Path) -> None:
    with serving(honest(here())) as one, serving(honest(here())) as two:
        ended = verify(folder, receipt, *DEMANDED[:2], "--rpc", one, "--rpc", two)
    assert (ended.code, ended.err) == (0, "")
    assert "at finalized block 2000 of 2026-" in ended.out
    assert "secret-key" not in ended.out


def test_a_folder_is_checked_against_one_finalized_block(folder: Path) -> None:
    asked: list[str] = []

    def answer(method: str, params: list[Any]) -> Any:
        asked.append(method)
        return honest(here())(method, params)

    with serving(answer) as url:
        assert verify(folder, folder / "all", *DEMANDED, "--rpc", url).code == 0
    assert sorted(asked) == ["eth_call", "eth_chainId", "eth_getBlockByNumber", "eth_getCode"]


def test_another_root_is_invalid(folder: Path, receipt: Path) -> None:
    liar = Stated(roots={world().head().size: b"\1" * 32})
    with serving(honest(liar)) as url:
        ended = verify(folder, receipt, "--json", "--rpc", url)
    assert (ended.code, ended.document["receipts"][0]["refused"]) == (1, "anchor")


def instead(method: str, result: Any) -> Callable[[str, list[Any]], Any]:
    return lambda asked, params: result if asked == method else honest(here())(asked, params)


BLOCK = honest(here())("eth_getBlockByNumber", ["finalized", False])
TROUBLE = {
    "another chain": honest(here(), chain_id=1),
    "no chain id": instead("eth_chainId", None),
    "no finalized block": instead("eth_getBlockByNumber", None),
    "a block without a hash": instead("eth_getBlockByNumber", BLOCK | {"hash": "0x"}),
    "a block without a number": instead("eth_getBlockByNumber", BLOCK | {"number": 7}),
    "no code": instead("eth_getCode", "0x"),
    "code of no form": instead("eth_getCode", "0xabc"),
    "nothing anchored": instead("eth_call", "0x" + "00" * 32),
    "an empty answer": instead("eth_call", "0x"),
    "null": instead("eth_call", None),
    "a longer answer": instead("eth_call", "0x" + "01" * 33),
    "too much": instead("eth_call", "0x" + "01" * MAX_ANSWER_BYTES),
    "no JSON": lambda *_: b"<html>",
    "deep JSON": lambda *_: b"[" * 100_000,
    "a list": lambda *_: b"[]",
    "an error": lambda *_: json.dumps({"error": {"message": "\x1b[31m" * 99}}).encode(),
    "a strange error": lambda *_: b'{"error": 7}',
}


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_with_a_node_is_neither_a_yes_nor_a_no(
    folder: Path, receipt: Path, name: str
) -> None:
    with serving(TROUBLE[name]) as url:
        ended = verify(folder, receipt, *DEMANDED, "--rpc", url)
    assert ended.code == 3, ended.out
    assert ended.document["receipts"][0]["steps"][-1]["result"] == "unchecked"


def test_one_good_node_of_two_is_not_enough(folder: Path, receipt: Path) -> None:
    with socket.socket() as closed:  # bound, so that nobody else listens there
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with serving(honest(here())) as url:
            ended = verify(folder, receipt, *DEMANDED, "--rpc", url, "--rpc", nobody)
    assert ended.code == 3
    assert "cannot be reached" in ended.document["receipts"][0]["steps"][-1]["detail"]


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://node.example",
        "node.example",
        "http://",
        "http://[",
        "http://a b",
    ],
)
def test_a_url_that_is_no_nodes_is_wrong_usage(folder: Path, receipt: Path, url: str) -> None:
    ended = verify(folder, receipt, "--rpc", url)
    assert (ended.code, ended.err) == (64, "offpeak-verify: --rpc: not an http or https URL\n")
