"""A development chain of our own: anvil, on 127.0.0.1 only.

Its ten accounts and their keys are published ones: whoever reaches the port owns everything on it.
"""

import json
import os
import signal
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from app.embedded.account import Account, engine_account
from app.embedded.binaries import reachable_program
from app.embedded.errors import WrongChainId
from app.embedded.homes import Home, open_home
from app.embedded.loopback import LOOPBACK
from app.embedded.npm import anvil_program
from app.embedded.server import CLEAN_ENVIRONMENT, EmbeddedServer, Listening, start_listening
from app.embedded.supervisor import ChildProcess, Command

DEVELOPMENT_CHAIN_ID: Final = 31_337
_ASK_SECONDS: Final = 30.0
_STATE_SECONDS: Final = 2
"""How often a persistent chain is written; what a killed one loses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnvilOptions:
    """How to run a chain: `home` None is temporary, `port` 0 takes a free one.

    `slots_in_an_epoch` 1 lets `safe` and `finalized` follow one and two blocks behind `latest`.
    `block_seconds` None mines a block for each transaction; 0 mines none by itself.
    `program` None looks for one (`anvil_program`).
    """

    home: Path | None = None
    port: int = 0
    chain_id: int = DEVELOPMENT_CHAIN_ID
    slots_in_an_epoch: int = 1
    block_seconds: int | None = None
    program: Path | None = None
    start_seconds: float = 15.0


class EmbeddedAnvil(EmbeddedServer):
    """One running chain; `stop()` it, or use it as a context manager."""

    @classmethod
    def start(cls, options: AnvilOptions | None = None) -> Self:
        """Start a chain and return once it answers with its chain id.

        A home holds the chain across restarts; a killed one loses its last two seconds.

        Raises:
            NodeMissing, NpmFailed, ExecFailed, ExitedEarly, PortInUse, StartTimeout, HomeInUse
            WrongChainId: the home holds another chain.
        """
        options = options or AnvilOptions()
        found = options.program or anvil_program(os.environ)
        account = engine_account()
        home = open_home(
            options.home, account, engine="anvil", timeout_seconds=options.start_seconds
        )
        try:
            _require_same_chain(home, options.chain_id)
            process, port = _serve(options, found, account, home)
        except BaseException:
            home.close()
            raise
        chain = cls(process=process, home=home, port=port, password="")
        try:
            chain.check_id(options.chain_id)
            chain.ask("anvil_setLoggingEnabled", False)
        except BaseException:
            chain.stop()
            raise
        return chain

    @property
    def url(self) -> str:
        """The chain's JSON-RPC URL."""
        return f"http://{LOOPBACK}:{self.port}"

    def check_id(self, expected: int) -> None:
        """Return when the chain has this id; WrongChainId names both."""
        found = int(str(self.ask("eth_chainId")), 16)
        if found != expected:
            raise WrongChainId(expected=expected, found=found)

    def ask(self, method: str, *params: object) -> object:
        """The result of one JSON-RPC call, blocking; for driving a development chain.

        Raises:
            AnvilRefused: it answered with an error, or not at all.
        """
        return ask_chain(self.url, method, params)


class AnvilRefused(Exception):
    """The development chain answered a call with an error, or not at all."""


def ask_chain(url: str, method: str, params: Sequence[object]) -> object:
    """The result of one JSON-RPC call at a development chain's URL; see `EmbeddedAnvil.ask`."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    try:
        with closing(HTTPConnection(urlsplit(url).netloc, timeout=_ASK_SECONDS)) as link:
            link.request("POST", "/", json.dumps(request), {"Content-Type": "application/json"})
            answer = json.loads(link.getresponse().read())
    except (OSError, HTTPException, ValueError) as error:
        raise AnvilRefused(f"{method}: {error}") from None
    if "error" in answer:
        raise AnvilRefused(f"{method}: {json.dumps(answer['error'])}")
    result: object = answer["result"]
    return result


def _require_same_chain(home: Home, chain_id: int) -> None:
    """Anvil's state has no chain id, so the home keeps it; WrongChainId when it is another."""
    kept = home.path / "chain-id"
    if not kept.exists() or not kept.read_text():
        home.new_file(kept.name, None, str(chain_id))
    found = int(kept.read_text())
    if found != chain_id:
        raise WrongChainId(expected=chain_id, found=found)


def _serve(
    options: AnvilOptions, found: Path, account: Account | None, home: Home
) -> tuple[ChildProcess, int]:
    program = reachable_program(found, account, copies=home.path / "programs")
    data = home.child("data", account)
    log = home.path / "anvil.log"

    def command(port: int) -> Command:
        return Command(
            name="anvil",
            argv=(str(program), *_arguments(options, port=port, data=data)),
            log=home.new_file(log.name, None),
            env={**CLEAN_ENVIRONMENT, "HOME": str(data), "TMPDIR": str(data)},
            account=account,
            stop_signals=(signal.SIGTERM,),
            remove=home.path if home.temporary else None,
            held_fds=(home.lock_fd,),
        )

    listening = Listening(
        command=command,
        # its own log says so, or another chain on the port could be taken for ours
        ready=lambda _, port: (
            f"Listening on {LOOPBACK}:{port}" in log.read_text() and _answers(port)
        ),
        timeout_seconds=options.start_seconds,
    )
    return start_listening(listening, port=options.port)


def _arguments(options: AnvilOptions, *, port: int, data: Path) -> list[str]:
    arguments = ["--host", LOOPBACK, "--port", str(port), "--chain-id", str(options.chain_id)]
    arguments += ["--slots-in-an-epoch", str(options.slots_in_an_epoch), "--no-cors"]
    arguments += ["--cache-path", str(data / "cache")]
    if options.block_seconds is not None:
        mining = ["--block-time", str(options.block_seconds)]
        arguments += mining if options.block_seconds else ["--no-mining"]
    if options.home is not None:
        arguments += ["--state", str(data / "state.json"), "--state-interval", str(_STATE_SECONDS)]
        arguments.append("--preserve-historical-states")
    return arguments


def _answers(port: int) -> bool:
    with suppress(AnvilRefused):
        ask_chain(f"http://{LOOPBACK}:{port}", "eth_chainId", ())
        return True
    return False
