"""Buyers that go on through every failure and keep books of their own."""

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.documents import JobDocument
from app.client.errors import GatewayUnreachable, ProblemError
from app.client.wallet import Wallet
from tests.acceptance.site import Buyer, Site

WAIT_SECONDS = 20
PAUSE_SECONDS = 0.05
ENDED_BADLY = "job-failed"


@dataclass
class Notes:
    """What patrons were told. Jobs by id; refusals by code."""

    jobs: dict[str, JobDocument] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Jobs that ended without an answer, and why."""
    refusals: Counter[str] = field(default_factory=Counter)
    repeats: int = 0
    """Acceptances sent again, because nothing or a server error came back."""
    changed: list[str] = field(default_factory=list)
    """Jobs that were told twice and differently."""
    payers: set[str] = field(default_factory=set)
    """Whose jobs these are."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ended(self) -> int:
        """How many jobs patrons know the end of."""
        return len(self.jobs) + len(self.failed)

    def note(self, job: JobDocument) -> None:
        """Take the end of a job."""
        with self._lock:
            known = self.jobs.setdefault(job.id, job)
            if known != job:
                self.changed.append(job.id)

    def refuse(self, problem: ProblemError) -> None:
        """Take a refusal."""
        with self._lock:
            self.refusals[problem.code] += 1
            if problem.code == ENDED_BADLY:
                self.failed[str(problem.figures["job_id"])] = problem.detail

    def repeat(self) -> None:
        """Take that the same acceptance goes out again."""
        with self._lock:
            self.repeats += 1


@dataclass
class Patron:
    """One wallet's buyer. It may reach several gateways, and asks the next when one fails."""

    clients: Sequence[Client]
    notes: Notes
    random: random.Random
    stop: threading.Event

    def run(self) -> None:
        """Ask one thing after another until told to stop, and then see the last one through."""
        while not self.stop.is_set():
            checked = self._offer()
            if checked is not None:
                self._see_through(checked)

    def _client(self) -> Client:
        return self.random.choice(self.clients)

    def _offer(self) -> CheckedQuote | None:
        """Return a quote, None when told to stop first."""
        while not self.stop.is_set():
            client = self._client()
            try:
                return client.quote(Buyer(client).question())
            except GatewayUnreachable:
                pass
            except ProblemError as problem:
                self.notes.refuse(problem)
                if problem.status < 500:
                    raise
            self.stop.wait(PAUSE_SECONDS)
        return None

    def _see_through(self, checked: CheckedQuote) -> None:
        """Send the acceptance until it is known what became of it."""
        while True:
            try:
                job = self._client().accept(checked, wait_seconds=WAIT_SECONDS)
            except GatewayUnreachable:
                pass
            except ProblemError as problem:
                self.notes.refuse(problem)
                if problem.status < 500 or problem.code == ENDED_BADLY:
                    return
            else:
                if job.ended:
                    self.notes.note(job)
                    return
            self.notes.repeat()
            threading.Event().wait(PAUSE_SECONDS)  # not to hammer what has just failed


@contextmanager
def patrons(
    site: Site, wallets: Sequence[Wallet], *, gateways: Sequence[str], seed: int
) -> Iterator[Notes]:
    """Run a patron per wallet (a wallet may appear more than once) until the block ends."""
    notes, stop = Notes(payers={wallet.address for wallet in wallets}), threading.Event()
    chance = random.Random(seed)
    people = [
        Patron(
            [site.buyer_of(wallet, gateway).client for gateway in gateways],
            notes,
            random.Random(chance.random()),
            stop,
        )
        for wallet in wallets
    ]
    with ThreadPoolExecutor(max_workers=len(people)) as pool:
        running: list[Future[None]] = [pool.submit(patron.run) for patron in people]
        try:
            yield notes
        finally:
            stop.set()
        for one in running:
            one.result(timeout=120)
