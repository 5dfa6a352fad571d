"""The all-in-one: engines, gateway, worker and one agent with a real model, for one machine.

Every process is a `ChildProcess`: it ends when we do, however we end. Used by `offpeak up` and
`offpeak demo`; production runs the same commands under its own supervisor.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from app.capacity.errors import SupplierExists
from app.capacity.suppliers import SupplierService
from app.config import Settings
from app.db.engine import OPERATOR_ROLE, open_database
from app.db.migrate import migrate
from app.embedded.chain import BASE_UNITS, DepositMade, DevelopmentChain, running_chain
from app.embedded.development import DevelopmentHome
from app.embedded.engines import running_engines
from app.embedded.errors import EmbeddedError, ExitedEarly, StartTimeout
from app.embedded.loopback import LOOPBACK
from app.embedded.services import (
    BETWEEN_PROBES_SECONDS,
    READY_SECONDS,
    RELEASE,
    agent_command,
    gateway_environment,
    service_commands,
    settled_port,
    wait_until_listening,
    wait_until_offered,
)
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

SUPPLIER_NAME: Final = "this-machine"
UP_FILE: Final = "up.json"
SUPPLIER_FILE: Final = "supplier.json"


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
    chain: bool = True
    """Whether to start a chain, where one can be had."""
    commit_seconds: int | None = None
    """How often spending is committed, where the home's usual is not meant."""
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
    chain: DevelopmentChain | None
    """None: the money is made up."""
    deposited: DepositMade | None
    """What was deposited at this start."""

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
        say("starting Postgres and Valkey" + (", and a chain" if options.chain else ""))
        started = InBackground(lambda: stack.enter_context(_chain_of(home, options, say)))
        try:
            engines = stack.enter_context(
                running_engines(home.path if options.persistent else None)
            )
            migrate(engines.database_url)
        finally:
            chain = started.result()
        port = settled_port(options.port, say)
        environment = gateway_environment(home, engines, port)
        environment |= chain_environment(chain, options)
        settings = Settings.model_validate(_fields(environment))
        key = wallet.result()
        prepared = asyncio.run(
            _prepare_database(home, settings, SigningKey(key).address, options, chain)
        )
        deposited = None
        if chain is not None and prepared.missing:
            say("depositing into the treasury")
            deposited = chain.deposit(key, prepared.missing)
        home.write_settings(environment)
        say("starting gateway, worker and agent")
        url = f"http://{LOOPBACK}:{port}"
        agent = InBackground(
            lambda: agent_command(
                home, url, prepared.agent_id, weights.result(), slots=options.slots
            )
        )
        services = service_commands(home, environment, persistent=options.persistent)
        processes = _start_processes(stack, url, services, agent)
        wait_until_offered(url, processes, slots=options.slots)
        if deposited is not None:
            asyncio.run(wait_until_credited(settings, SigningKey(key).address, processes))
        home.remember(UP_FILE, up_document(url, home, settings, chain))
        stack.callback(home.forget, UP_FILE)
        yield Stack(
            url=url,
            home=home,
            settings=settings,
            wallet_key=key,
            processes=processes,
            chain=chain,
            deposited=deposited,
        )


@contextmanager
def _chain_of(
    home: DevelopmentHome, options: StackOptions, say: Say
) -> Generator[DevelopmentChain | None]:
    if not options.chain:
        yield None
        return
    with running_chain(home, persistent=options.persistent, say=say) as chain:
        yield chain


def chain_environment(chain: DevelopmentChain | None, options: StackOptions) -> dict[str, str]:
    """Return what gateway and worker must have set for the chain, nothing without one."""
    found = chain.settings() if chain else {}
    if chain and options.commit_seconds is not None:
        found["OFFPEAK_COMMIT_INTERVAL_SECONDS"] = str(options.commit_seconds)
    return found


def _start_processes(
    stack: ExitStack, url: str, services: tuple[Command, Command], agent: "InBackground[Command]"
) -> tuple[ChildProcess, ...]:
    gateway, worker = (stack.enter_context(ChildProcess.start(each)) for each in services)
    wait_until_listening(url, gateway)
    return gateway, worker, stack.enter_context(ChildProcess.start(agent.result()))


def up_document(
    url: str, home: DevelopmentHome, settings: Settings, chain: DevelopmentChain | None
) -> dict[str, object]:
    """Return what the buyer's commands need to know; nothing of it is secret."""
    return {
        "url": url,
        "rpc_url": chain.url if chain else None,
        "chain_id": settings.chain_id,
        "token_address": settings.token_address,
        "treasury_address": settings.treasury_address,
        "receipt_anchor_address": settings.receipt_anchor_address,
        "quote_signer": home.quote_signer(),
    }


async def wait_until_credited(
    settings: Settings, wallet: Address, processes: tuple[ChildProcess, ...]
) -> None:
    """Return once nothing that the wallet deposited is pending.

    Raises:
        StartTimeout: it took too long. ExitedEarly: a process ended.
    """
    worker = processes[1]
    database = open_database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        wallets = WalletService(database, token=parse_address(settings.token_address))
        end = time.monotonic() + READY_SECONDS
        while (await wallets.balance(wallet)).available == 0:
            if (status := worker.status()) is not None:
                raise ExitedEarly("worker", status=status, log_tail=worker.log_tail())
            if time.monotonic() > end:
                tail = worker.log_tail()
                raise StartTimeout("worker", timeout_seconds=READY_SECONDS, log_tail=tail)
            await asyncio.sleep(BETWEEN_PROBES_SECONDS)
    finally:
        await database.dispose()


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


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Our agent's id, and what is missing in the wallet, in base units of the token."""

    agent_id: str
    missing: int


async def _prepare_database(
    home: DevelopmentHome,
    settings: Settings,
    wallet: Address,
    options: StackOptions,
    chain: DevelopmentChain | None,
) -> _Prepared:
    """Register and authorize our supplier once; top the wallet up, if money is made up here."""
    database = open_database(settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    try:
        token = parse_address(settings.token_address)
        agent_id = await _supplier(home, SupplierService(database, asset=token))
        balance = await WalletService(database, token=token).balance(wallet)
        missing = options.balance - balance.available - balance.pending
        if missing > 0 and chain is None:
            await FundingService(database, settings).fund(wallet, Nano(missing))
            missing = 0
    finally:
        await database.dispose()
    return _Prepared(agent_id, -(-max(missing, 0) // BASE_UNITS))


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


def _fields(environment: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("OFFPEAK_").lower(): value for name, value in environment.items()}
