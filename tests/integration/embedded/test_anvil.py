"""The development chain as an engine of ours."""

import os
import shutil
import signal
import socket
from pathlib import Path

import httpx
import psutil
import pytest

from app.embedded import npm
from app.embedded.anvil import AnvilOptions, AnvilRefused, EmbeddedAnvil
from app.embedded.errors import (
    BinaryMissing,
    ExecFailed,
    HomeInUse,
    NodeMissing,
    NpmFailed,
    PortInUse,
    WrongChainId,
)
from app.embedded.npm import anvil_program, can_have_anvil
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.skipif(
    not can_have_anvil(os.environ), reason="needs node and npm, or OFFPEAK_ANVIL"
)

RICH = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"


def height(anvil: EmbeddedAnvil) -> int:
    return int(str(anvil.ask("eth_blockNumber")), 16)


def hash_of(anvil: EmbeddedAnvil, block: str) -> str:
    found = anvil.ask("eth_getBlockByNumber", block, False)
    assert isinstance(found, dict)
    return str(found["hash"])


def test_a_chain_starts_with_its_id_and_leaves_nothing_behind() -> None:
    with EmbeddedAnvil.start(AnvilOptions(chain_id=4_242)) as anvil:
        anvil.check_id(4_242)
        with pytest.raises(WrongChainId, match="4242, not 1"):
            anvil.check_id(1)
        (link,) = [
            link
            for link in psutil.Process(anvil.process.pid).net_connections()
            if link.status == "LISTEN"
        ]
        assert (link.laddr.ip, link.laddr.port) == ("127.0.0.1", anvil.port)
        with pytest.raises(AnvilRefused, match="eth_nope"):
            anvil.ask("eth_nope")
    assert has_ended(anvil.process.pid)
    assert not anvil.home.path.exists()


def test_safe_and_finalized_follow_one_and_two_blocks_behind() -> None:
    with EmbeddedAnvil.start() as anvil:
        anvil.ask("anvil_mine", "0x5")
        assert hash_of(anvil, "safe") == hash_of(anvil, "0x4")
        assert hash_of(anvil, "finalized") == hash_of(anvil, "0x3")


def test_a_home_keeps_the_chain_and_its_history_across_a_restart(open_directory: Path) -> None:
    options = AnvilOptions(home=open_directory)
    with EmbeddedAnvil.start(options) as anvil:
        before = int(str(anvil.ask("eth_getBalance", RICH, "latest")), 16)
        anvil.ask("anvil_mine", "0x3")
        anvil.ask("anvil_setBalance", RICH, "0x7")
        anvil.ask("anvil_mine", "0x1")
        tip = hash_of(anvil, "latest")
    with EmbeddedAnvil.start(options) as anvil:
        assert (height(anvil), hash_of(anvil, "latest")) == (4, tip)
        assert anvil.ask("eth_getBalance", RICH, "latest") == "0x7"
        assert int(str(anvil.ask("eth_getBalance", RICH, {"blockHash": tip})), 16) == 7
        assert int(str(anvil.ask("eth_getBalance", RICH, "0x1")), 16) == before
    with pytest.raises(WrongChainId):
        EmbeddedAnvil.start(AnvilOptions(home=open_directory, chain_id=4_242))


def test_a_killed_chain_comes_back_with_what_it_had_written(open_directory: Path) -> None:
    options = AnvilOptions(home=open_directory)
    with EmbeddedAnvil.start(options) as killed:
        killed.ask("anvil_mine", "0x3")
        state = killed.home.path / "data" / "state.json"
        wait_until(lambda: state.is_file() and b'"number":"0x3"' in state.read_bytes())
        killed.process.signal(signal.SIGKILL)
        wait_until(lambda: killed.process.status() is not None)
    with EmbeddedAnvil.start(AnvilOptions(home=open_directory, port=killed.port)) as anvil:
        assert anvil.url == killed.url
        assert height(anvil) == 3


def test_one_home_serves_one_chain_and_one_port_one_server(open_directory: Path) -> None:
    with EmbeddedAnvil.start(AnvilOptions(home=open_directory)), pytest.raises(HomeInUse):
        EmbeddedAnvil.start(AnvilOptions(home=open_directory, start_seconds=0))
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortInUse):
        EmbeddedAnvil.start(AnvilOptions(port=taken.getsockname()[1]))
    with EmbeddedAnvil.start() as other, pytest.raises(PortInUse):
        EmbeddedAnvil.start(AnvilOptions(port=other.port))


def test_blocks_come_by_time_or_only_when_asked_for() -> None:
    transfer = {"from": RICH, "to": RICH, "value": "0x1"}
    with EmbeddedAnvil.start(AnvilOptions(block_seconds=0)) as anvil:
        anvil.ask("eth_sendTransaction", transfer)
        assert height(anvil) == 0
        anvil.ask("anvil_mine", "0x1")
        assert height(anvil) == 1
    with EmbeddedAnvil.start(AnvilOptions(block_seconds=1)) as anvil:
        wait_until(lambda: height(anvil) >= 1)


def test_a_reorg_makes_other_blocks_and_the_old_ones_are_gone() -> None:
    with EmbeddedAnvil.start() as anvil:
        anvil.ask("anvil_mine", "0x3")
        old = hash_of(anvil, "0x3")
        anvil.ask("anvil_reorg", 2, [])
        assert height(anvil) == 3
        assert hash_of(anvil, "0x3") != old


def test_calls_are_not_written_to_the_log() -> None:
    with EmbeddedAnvil.start() as anvil:
        before = anvil.process.log_tail()
        for _ in range(20):
            height(anvil)
        assert anvil.process.log_tail() == before


def test_a_page_of_a_browser_may_not_read_the_chain() -> None:
    with EmbeddedAnvil.start() as anvil:
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
        answer = httpx.post(anvil.url, json=body, headers={"Origin": "https://site.net"})
        assert "access-control-allow-origin" not in answer.headers


def test_a_named_program_is_taken_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "anvil"
    with pytest.raises(BinaryMissing, match="OFFPEAK_ANVIL"):
        anvil_program({"OFFPEAK_ANVIL": str(program)})
    program.write_text("no program")
    assert anvil_program({"OFFPEAK_ANVIL": str(program)}) == program
    with pytest.raises(ExecFailed):
        EmbeddedAnvil.start(AnvilOptions(program=program))


def test_without_node_the_next_step_is_named(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    assert not can_have_anvil(environ)
    with pytest.raises(NodeMissing) as missing:
        anvil_program(environ)
    assert "OFFPEAK_ANVIL" in missing.value.next_step


def test_an_install_that_fails_leaves_nothing_half_done(tmp_path: Path) -> None:
    tools, cache = tmp_path / "tools", tmp_path / "cache"
    tools.mkdir()
    for name, lines in (("node", "exit 0"), ("npm", "echo 'registry unreachable' >&2; exit 1")):
        (tools / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tools / name).chmod(0o755)
    environ = {"PATH": f"{tools}:/usr/bin:/bin", "XDG_CACHE_HOME": str(cache)}
    with pytest.raises(NpmFailed, match="registry unreachable") as failed:
        anvil_program({**environ, "PATH": f"{tools}"})
    assert failed.value.next_step
    assert list((cache / "offpeak").iterdir()) == []
    (tools / "npm").write_text("#!/bin/sh\nexit 0\n")  # installs nothing
    with pytest.raises(NpmFailed, match="no build for this machine"):
        anvil_program(environ)
    assert list((cache / "offpeak").iterdir()) == []


def test_what_is_installed_is_used_again_without_npm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("anvil") is not None or os.environ.get("OFFPEAK_ANVIL"):
        pytest.skip("another anvil goes first here")
    program = anvil_program(os.environ)
    monkeypatch.setattr(npm, "_run_npm", None)
    monkeypatch.chdir(tmp_path)
    assert anvil_program({**os.environ, "PATH": ""}) == program
