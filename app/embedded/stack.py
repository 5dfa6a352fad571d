"""The all-in-one: engines, gateway, worker and one agent with a real model, for one machine.

Every process is a `ChildProcess`: it ends when we do, however we end. Used by `offpeak up` and
`offpeak demo`; production runs the same commands under its own supervisor.
"""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

import httpx

import app
from app.capacity.errors import SupplierExists
from app.capacity.suppliers import SupplierService
from app.config import Settings
from app.db.engine import OPERATOR_ROLE, open_database
from app.db.migrate import migrate
from app.embedded.development import SECRETS, DevelopmentHome
from app.embedded.engines import Engines, running_engines
from app.embedded.errors import EmbeddedError, ExitedEarly
from app.embedded.loopback import LOOPBACK, free_port
from app.embedded.supervisor import ChildProcess, Command
from app.embedded.weights import Say, fetched_weights
from app.kit.ids import IdPrefix, format_id, parse_id
from app.models.catalogue import Catalogue
from app.wallets.funding import FundingService
from app.wallets.service import WalletService
from ledger.encoding import Address, parse_address
from ledger.money import Nano
from ledger.signing import SigningKey

Result = TypeVar("Result")

RELEASE: Final = "smollm2-135m-instruct"
REGION: Final = "local"
ASK: Final = "0.000002000"
"""What the development supplier asks for a slot-second, in tokens."""
SUPPLIER_NAME: Final = "this-machine"
READY_SECONDS: Final = 60.0
PROBE_SECONDS: Final = 2.0
BETWEEN_PROBES_SECONDS: Final = 0.1
GRACE_SECONDS: Final = 15.0
UP_FILE: Final = "up.json"
SUPPLIER_FILE: Final = "supplier.json"
_ROOT: Final = Path(app.__file__).resolve().parents[1]
_AGENT: Final = "from supplier_agent.cli import main; main()"


class ServiceEnded(EmbeddedError):
    """A process of the all-in-one ended by itself; the rest has been stopped."""

    code = "service-ended"

    def __init__(self, name: str, *, status: int, log_tail: str) -> None:
        super().__init__(f"{name} ended with status {status}")
        self.name = name
        self.status = status
        self.log_tail = log_tail


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What to start. `port` 0 takes a free one; the wallet is topped up to `balance`.

    Without `persistent` the whole home goes when everything has stopped.
    """

    home: Path
    persistent: bool
    port: int
    balance: Nano
    slots: int = 4
    environ: Mapping[str, str] = field(default_factory=dict)
    """Where the weights' cache is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A running all-in-one."""

    url: str
    home: DevelopmentHome
    settings: Settings
    wallet_key: bytes = field(repr=False)
    processes: tuple[ChildProcess, ...]

    @property
    def wallet(self) -> Address:
        """The funded development wallet."""
        return SigningKey(self.wallet_key).address

    def check(self) -> None:
        """Return while every process runs; ServiceEnded names the one that does not."""
        for process in self.processes:
            status = process.status()
            if status is not None:
                raise ServiceEnded(process.command.name, status=status, log_tail=process.log_tail())


@contextmanager
def running_stack(options: StackOptions, say: Say) -> Generator[Stack]:
    """Yield the all-in-one once slots are really on offer; stop everything at the end.

    Raises:
        EmbeddedError: something did not start; nothing is left running.
        WeightsError: the model's weights could not be had.
        MigrationError: the database could not be brought to this version.
    """
    home = DevelopmentHome(options.home.resolve())
    home.prepare()
    with ExitStack() as stack:
        wallet = InBackground(home.wallet_key)
        weights = InBackground(
            lambda: fetched_weights(Catalogue().get(RELEASE), options.environ, say)
        )
        say("starting Postgres and Valkey")
        engines = stack.enter_context(running_engines(home.path if options.persistent else None))
        migrate(engines.database_url)
        port = settled_port(options.port, say)
        environment = gateway_environment(home, engines, port)
        settings = Settings.model_validate(_fields(environment))
        key = wallet.result()
        agent_id = asyncio.run(_prepare_database(home, settings, SigningKey(key).address, options))
        home.write_settings(environment)
        say("starting gateway, worker and agent")
        url = f"http://{LOOPBACK}:{port}"
        agent = InBackground(
            lambda: agent_command(home, url, agent_id, weights.result(), slots=options.slots)
        )
        services = service_commands(home, environment, persistent=options.persistent)
        processes = _start_processes(stack, url, services, agent)
        wait_until_offered(url, processes, slots=options.slots)
        home.remember(UP_FILE, up_document(url, home, settings))
        stack.callback(home.forget, UP_FILE)
        yield Stack(url=url, home=home, settings=settings, wallet_key=key, processes=processes)


def service_commands(
    home: DevelopmentHome, environment: Mapping[str, str], *, persistent: bool
) -> tuple[Command, Command]:
    """Return how gateway and worker run."""
    gateway = _python(home, "gateway", environment, "-m", "app.cli", "serve")
    worker = _python(home, "worker", environment, "-m", "app.cli", "work")
    if not persistent:  # the gateway's guard, the last to end, removes it even when we are killed
        gateway = replace(gateway, remove=home.path)
    return gateway, worker


def _start_processes(
    stack: ExitStack, url: str, services: tuple[Command, Command], agent: "InBackground[Command]"
) -> tuple[ChildProcess, ...]:
    gateway, worker = (stack.enter_context(ChildProcess.start(each)) for each in services)
    wait_until_listening(url, gateway)
    return gateway, worker, stack.enter_context(ChildProcess.start(agent.result()))


def chosen_port(wanted: int) -> int:
    """Return the wanted port of the loopback, or a free one for 0 or one that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError:
            return free_port()
    return wanted or free_port()


def settled_port(wanted: int, say: Say) -> int:
    """Return `chosen_port`, saying so when it is another than the one that was wanted."""
    port = chosen_port(wanted)
    if wanted not in (0, port):
        say(f"port {wanted} is taken: using {port}")
    return port


def gateway_environment(home: DevelopmentHome, engines: Engines, port: int) -> dict[str, str]:
    """Return what gateway and worker must have set; other OFFPEAK_ variables of ours stay.

    Keys are named by file, never by value.
    """
    environment = {
        "OFFPEAK_ENVIRONMENT": "development",
        "OFFPEAK_DATABASE_URL": engines.database_url,
        "OFFPEAK_REDIS_URL": engines.redis_url,
        "OFFPEAK_HOST": LOOPBACK,
        "OFFPEAK_PORT": str(port),
        "OFFPEAK_PUBLIC_URL": f"http://{LOOPBACK}:{port}",
    }
    for name in SECRETS:
        environment[f"OFFPEAK_{name.upper()}_FILE"] = str(home.secret_file(name))
    return environment


def agent_command(
    home: DevelopmentHome, url: str, agent_id: str, weights: Path, *, slots: int
) -> Command:
    """Return how the agent runs: one deployment of the release, on llama.cpp, in this machine."""
    release = Catalogue()
    arguments = {
        "--gateway": url,
        "--agent-id": agent_id,
        "--key-file": str(home.device_key),
        "--release": str(release.folder_of(release.get(RELEASE)) / "release.json"),
        "--weights": str(weights),
        "--deployment": "local",
        "--region": REGION,
        "--ask": ASK,
        "--slots": str(slots),
    }
    flat = [part for pair in arguments.items() for part in pair]
    return _python(home, "agent", {}, "-c", _AGENT, "run", "--json", *flat)


def wait_until_listening(url: str, gateway: ChildProcess) -> None:
    """Return once the gateway answers, so that the agent's first dial is not in vain.

    Raises:
        ExitedEarly: it ended. StartTimeout: it took too long.
    """
    with httpx.Client(base_url=url, timeout=PROBE_SECONDS) as http:

        def alive() -> bool:
            try:
                return http.get("/healthz").is_success
            except httpx.HTTPError:
                return False

        gateway.wait_ready(alive, timeout_seconds=READY_SECONDS)


def wait_until_offered(url: str, processes: tuple[ChildProcess, ...], *, slots: int) -> None:
    """Return once the gateway is ready and quotes can be had for all slots of the agent.

    Raises:
        ExitedEarly: one of the processes ended. StartTimeout: it took too long.
    """
    with httpx.Client(base_url=url, timeout=PROBE_SECONDS) as http:

        def offered() -> bool:
            for process in processes[1:]:
                status = process.status()
                if status is not None:
                    name = process.command.name
                    raise ExitedEarly(name, status=status, log_tail=process.log_tail())
            ready = _slots_on_offer(http) >= slots
            if not ready:
                time.sleep(BETWEEN_PROBES_SECONDS)  # each probe costs the gateway two requests
            return ready

        processes[0].wait_ready(offered, timeout_seconds=READY_SECONDS)


def up_document(url: str, home: DevelopmentHome, settings: Settings) -> dict[str, object]:
    """Return what the buyer's commands need to know; nothing of it is secret."""
    return {
        "url": url,
        "chain_id": settings.chain_id,
        "token_address": settings.token_address,
        "treasury_address": settings.treasury_address,
        "receipt_anchor_address": settings.receipt_anchor_address,
        "quote_signer": home.quote_signer(),
    }


class InBackground(Generic[Result]):
    """A call that runs in a thread meanwhile; its failure is raised where it is asked for."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._outcome: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> Result:
        """Wait for the call and return what it returned, or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def _run(self) -> None:
        try:
            self._outcome.append(self._call())
        except BaseException as error:  # noqa: BLE001  # handed to whoever waits
            self._error = error


def _slots_on_offer(http: httpx.Client) -> int:
    try:
        models = http.get("/v1/models").raise_for_status().json()
        capacity = http.get("/v1/capacity").raise_for_status().json()
    except httpx.HTTPError:
        return 0
    if not any(region["available"] for each in models["models"] for region in each["regions"]):
        return 0
    return sum(each["offered"] for each in capacity["capacity"])


async def _prepare_database(
    home: DevelopmentHome, settings: Settings, wallet: Address, options: StackOptions
) -> str:
    """Register and authorize our supplier once, top the wallet up; return the agent's id."""
    database = open_database(settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    try:
        token = parse_address(settings.token_address)
        agent_id = await _supplier(home, SupplierService(database, asset=token))
        balance = await WalletService(database, token=token).balance(wallet)
        missing = options.balance - balance.available
        if missing > 0:
            await FundingService(database, settings).fund(wallet, Nano(missing))
    finally:
        await database.dispose()
    return agent_id


async def _supplier(home: DevelopmentHome, service: SupplierService) -> str:
    """Return our authorized agent's id; registered unless this home's database knows it."""
    try:
        made = await service.register(SUPPLIER_NAME, home.device_public_key())
    except SupplierExists:
        known = home.recall(SUPPLIER_FILE)
        if not known:
            raise
    else:
        known = {
            "supplier": format_id(IdPrefix.SUPPLIER, made.supplier_id),
            "agent": format_id(IdPrefix.AGENT, made.agent_id),
        }
        home.remember(SUPPLIER_FILE, known)
    await service.authorize(parse_id(IdPrefix.SUPPLIER, str(known["supplier"])))
    return str(known["agent"])


def _python(home: DevelopmentHome, name: str, extra: Mapping[str, str], *argv: str) -> Command:
    return Command(
        name=name,
        argv=(sys.executable, *argv),
        log=home.logs / f"{name}.log",
        cwd=home.path,
        env={**os.environ, "PYTHONPATH": str(_ROOT), **extra},
        grace_seconds=GRACE_SECONDS,
    )


def _fields(environment: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("OFFPEAK_").lower(): value for name, value in environment.items()}
