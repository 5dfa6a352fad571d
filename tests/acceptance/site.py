"""A whole OFFPEAK of real processes: gateways, worker, agents, engines; each can be killed.

Gateways and agents are the shipped programs. The engine is the shipped fault engine, so that
many slots and slow answers cost nothing; the real model is used where a test says so.
"""

import asyncio
import json
import os
import secrets
import signal
import ssl
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import app
from app.capacity.suppliers import SupplierService
from app.client.asking import Question, Turn
from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.documents import JobDocument
from app.client.errors import GatewayUnreachable, ProblemError
from app.client.terms import Terms
from app.client.transport import Transport
from app.client.wallet import Wallet
from app.config import Settings
from app.db.engine import OPERATOR_ROLE, open_database
from app.embedded.loopback import free_port
from app.embedded.supervisor import ChildProcess, Command
from app.finance.check import LedgerCheck, Report
from app.kit.ids import IdPrefix, format_id
from app.models.catalogue import Catalogue
from app.models.messages import Message
from app.models.tokenizer import CountingTokenizer
from app.wallets.funding import FundingService
from ledger.encoding import Address, parse_address
from ledger.money import NANO_PER_TOKEN, Nano
from tests.waiting import wait_until

RELEASE = "smollm2-135m-instruct"
REGION = "local"
ONE_TOKEN = Nano(NANO_PER_TOKEN)
PROMPT = "Say something."
REPLY = " one two three four five six seven eight"
_ROOT = Path(app.__file__).resolve().parents[1]
_AGENT = "from supplier_agent.cli import main; main()"


@cache
def prompt_tokens() -> int:
    """Return how many tokens the gateway counts for `PROMPT`."""
    catalogue = Catalogue()
    release = catalogue.get(RELEASE)
    tokenizer = CountingTokenizer(release, catalogue.folder_of(release))
    return tokenizer.count_prompt([Message("user", PROMPT)])


@cache
def _tls() -> ssl.SSLContext:
    """One context for all clients: making it costs more than a request."""
    return ssl.create_default_context()


def honest_script(delay_seconds: float) -> dict[str, object]:
    """Return the script of an engine that answers `PROMPT` as it should."""
    return {
        "fault": "slow" if delay_seconds else "none",
        "delay_seconds": delay_seconds,
        "reply": REPLY,
        "prompt_tokens": prompt_tokens(),
        "output_tokens": None,
    }


@dataclass
class Site:
    """What one test runs. Everything ends with it."""

    database_url: str
    redis_url: str | None
    folder: Path
    processes: dict[str, ChildProcess] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _keys: dict[str, str] = field(
        default_factory=lambda: {
            f"OFFPEAK_{name}": secrets.token_hex(32)
            for name in ("SIGNING_KEY", "CONTENT_KEY", "CHECKPOINT_KEY")
        }
    )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.stop()
        self._stack.close()

    # --- processes --------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        """Return the settings that all gateways and workers share."""
        given = {
            "OFFPEAK_ENVIRONMENT": "development",
            "OFFPEAK_DATABASE_URL": self.database_url,
            # a job must outlive a restart of anything, also on a machine that does more than this
            "OFFPEAK_RUN_SECONDS_MIN": "120",
            # so that kills of the worker meet it while it seals, logs and signs
            "OFFPEAK_SEAL_INTERVAL_SECONDS": "0.2",
            **({"OFFPEAK_REDIS_URL": self.redis_url} if self.redis_url else {}),
            **self._keys,
            **more,
        }
        return {**os.environ, "PYTHONPATH": str(_ROOT), **given}

    def set_key(self, name: str, value: str) -> None:
        """Give every process that starts from now on another key."""
        self._keys[name] = value

    def settings(self) -> Settings:
        """Return the same as `Settings`."""
        named = {
            name.removeprefix("OFFPEAK_").lower(): value
            for name, value in self.environment().items()
            if name.startswith("OFFPEAK_")
        }
        return Settings.model_validate(named)

    def start(self, name: str, environment: Mapping[str, str], *argv: str) -> ChildProcess:
        """Start a program of ours under a name, again if it ran before."""
        if name in self.processes:
            self.processes[name].stop()
        process = ChildProcess.start(
            Command(
                name=name,
                argv=(sys.executable, *argv),
                log=self.folder / f"{name}.log",
                cwd=self.folder,
                env=dict(environment),
                grace_seconds=10,
            )
        )
        self.processes[name] = process
        return process

    def gateway(self, name: str = "gateway", **more: str) -> str:
        """Start a gateway (always on the same port under the same name); return its URL."""
        port = self.urls.get(name, f":{free_port()}").rpartition(":")[2]
        environment = self.environment(
            OFFPEAK_PORT=port, OFFPEAK_REPLICA_ID=name, **{k.upper(): v for k, v in more.items()}
        )
        process = self.start(name, environment, "-m", "app.cli", "serve")
        self.urls[name] = f"http://127.0.0.1:{port}"
        process.wait_ready(lambda: self._answers(f"{self.urls[name]}/readyz"), timeout_seconds=60)
        return self.urls[name]

    @staticmethod
    def _answers(url: str) -> bool:
        try:
            return httpx.get(url, timeout=2).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def worker(self, name: str = "worker") -> None:
        """Start a worker."""
        process = self.start(name, self.environment(), "-m", "app.cli", "work")
        process.wait_ready(lambda: "worker started" in process.log_tail(), timeout_seconds=60)

    def engine(
        self, name: str = "engine", *, slots: int = 4, delay_seconds: float = 0.0, **script: object
    ) -> str:
        """Start a fault engine that answers `PROMPT` honestly, at a pace; return its URL.

        `script` changes what it does (`supplier_agent.engine.faults.Script`).
        """
        release = Catalogue().folder_of(Catalogue().get(RELEASE)) / "release.json"
        port = self.urls.get(name, f":{free_port()}").rpartition(":")[2]
        options = {
            "--port": port,
            "--slots": str(slots),
            "--release": str(release),
            "--script": json.dumps(honest_script(delay_seconds) | script),
        }
        flat = [part for pair in options.items() for part in pair]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        process = self.start(name, environment, "-m", "supplier_agent.engine.faults", *flat)
        self.urls[name] = f"http://127.0.0.1:{port}"
        process.wait_ready(lambda: self._answers(f"{self.urls[name]}/health"), timeout_seconds=60)
        return self.urls[name]

    def script(self, engine: str, **script: object) -> None:
        """Tell a fault engine what to do from now on; what is not named is as `engine` has it."""
        told = honest_script(0.0) | script
        httpx.put(f"{self.urls[engine]}/control", json=told, timeout=10).raise_for_status()

    def agent(self, name: str, *, engine: str, gateway: str = "gateway", slots: int = 4) -> None:
        """Register, authorize and start an agent on a running engine; again under its name."""
        key_file = self.folder / f"{name}.key"
        ids = self.folder / f"{name}.id"
        if not ids.exists():
            seed = secrets.token_bytes(32)
            key_file.write_text(seed.hex() + "\n")
            key_file.chmod(0o600)
            public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
            ids.write_text(asyncio.run(self._register(name, public)))
        release = Catalogue().folder_of(Catalogue().get(RELEASE)) / "release.json"
        options = {
            "--gateway": self.urls[gateway],
            "--agent-id": ids.read_text(),
            "--key-file": str(key_file),
            "--release": str(release),
            "--engine-url": self.urls[engine],
            "--deployment": "gpu-0",
            "--region": REGION,
            "--ask": "0.000002000",
            "--slots": str(slots),
        }
        flat = [part for pair in options.items() for part in pair]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        self.start(name, environment, "-c", _AGENT, "run", *flat)

    async def _register(self, name: str, public: bytes) -> str:
        database = open_database(self.database_url, pool_size=1, role=OPERATOR_ROLE)
        token = parse_address(self.settings().token_address)
        suppliers = SupplierService(database, asset=token)
        made = await suppliers.register(name, public)
        await suppliers.authorize(made.supplier_id)
        await database.dispose()
        return format_id(IdPrefix.AGENT, made.agent_id)

    def kill(self, name: str) -> None:
        """SIGKILL one process, and wait until it is gone."""
        process = self.processes[name]
        process.signal(signal.SIGKILL)
        wait_until(lambda: process.status() is not None)

    def are_slots_on_offer(self, slots: int, gateway: str = "gateway") -> bool:
        """Whether so many slots can be bought now."""
        try:
            models = httpx.get(f"{self.urls[gateway]}/v1/models", timeout=5, verify=_tls()).json()
            capacity = httpx.get(
                f"{self.urls[gateway]}/v1/capacity", timeout=5, verify=_tls()
            ).json()
        except (httpx.HTTPError, ValueError):
            return False
        available = any(r["available"] for m in models["models"] for r in m["regions"])
        return available and sum(c["offered"] for c in capacity["capacity"]) >= slots

    def wait_for_slots(self, slots: int, gateway: str = "gateway") -> None:
        """Return once so many slots can be bought."""
        wait_until(lambda: self.are_slots_on_offer(slots, gateway), timeout_seconds=60)

    # --- buyers and books -------------------------------------------------------------------

    def buyer(self, *, tokens: float = 1.0, gateway: str = "gateway") -> "Buyer":
        """Return a new buyer with money."""
        return self.buyer_of(self.wallet(Nano(int(tokens * NANO_PER_TOKEN))), gateway)

    def wallet(self, amount: Nano = ONE_TOKEN) -> Wallet:
        """Return a new wallet with money."""
        wallet = Wallet(secrets.token_bytes(32))
        self.fund(wallet, amount)
        return wallet

    def fund(self, wallet: Wallet, amount: Nano) -> None:
        """Give a wallet money."""
        asyncio.run(self._fund(wallet.address, amount))

    def buyer_of(self, wallet: Wallet, gateway: str = "gateway") -> "Buyer":
        """Return a buyer on an existing wallet."""
        return Buyer(self._stack.enter_context(self.client_of(wallet, gateway)))

    def client_of(self, wallet: Wallet, gateway: str) -> Client:
        """Return a client on an existing wallet; the caller closes it."""
        settings = self.settings()
        terms = Terms(
            chain_id=settings.chain_id,
            treasury=parse_address(settings.treasury_address),
            receipt_anchor=parse_address(settings.receipt_anchor_address),
            token=parse_address(settings.token_address),
        )
        http = httpx.Client(verify=_tls())
        return Client(Transport(self.urls[gateway], http=http), terms, wallet=wallet)

    async def _fund(self, payer: Address, amount: Nano) -> None:
        database = open_database(self.database_url, pool_size=1, role=OPERATOR_ROLE)
        await FundingService(database, self.settings()).fund(payer, amount)
        await database.dispose()

    def ledger(self) -> Report:
        """Recompute the books."""

        async def check() -> Report:
            database = open_database(self.database_url, pool_size=1)
            report = await LedgerCheck(database).run()
            await database.dispose()
            return report

        return asyncio.run(check())


@dataclass
class Buyer:
    """A wallet that asks one thing, and does not give up."""

    client: Client

    def question(self, *, max_output_tokens: int = 32) -> Question:
        turns = (Turn("user", PROMPT),)
        return Question(model=RELEASE, turns=turns, max_output_tokens=max_output_tokens)

    def checked_quote(self) -> CheckedQuote:
        """Return a checked quote for the question."""
        return self.client.quote(self.question())

    def ask_until_answered(self, *, timeout_seconds: float = 60) -> JobDocument:
        """Quote once, then send the same acceptance again until the job has ended."""
        found: list[JobDocument] = []
        checked = self.checked_quote()

        def answered() -> bool:
            try:
                job = self.client.accept(checked, wait_seconds=20)
            except (GatewayUnreachable, httpx.HTTPError):
                return False
            except ProblemError as problem:
                if problem.status not in (502, 503) or problem.code == "job-failed":
                    raise
                return False
            if job.ended:
                found.append(job)
            return job.ended

        wait_until(answered, timeout_seconds=timeout_seconds)
        return found[0]
