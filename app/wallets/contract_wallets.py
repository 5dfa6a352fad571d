"""Contract wallets' signatures: asked of the chain, remembered for moments, limited, kept.

A yes is remembered for 3 seconds: a revoked owner's signature is refused at most that long after
the block of the revocation reached our endpoints. A no is remembered for 1 second, so that a wallet
that has just been deployed need not wait.
"""

import asyncio
import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import text

from app.db.engine import Database
from app.kit.clock import utc_now
from app.wallets.errors import SignatureNotCheckable, TooManySignatureChecks
from app.wallets.probe import ContractProbe, Question, Unanswered
from ledger.encoding import Address
from ledger.onchain import ContractCheck

KEEP: Final = text(
    "SELECT offpeak.record_contract_signature(:digest, :signer, :method, :number, :block)"
)
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """How often the chain is asked by one gateway; of remembered answers nothing is counted."""

    yes_seconds: float = 3.0
    no_seconds: float = 1.0
    remembered: int = 10_000
    wallet_per_second: float = 2.0
    wallet_burst: int = 10
    all_per_second: float = 50.0
    all_burst: int = 100
    at_once: int = 32
    seconds: float = 8.0
    """The longest that one check waits."""


class Allowance:
    """A token bucket: `burst` at once, `per_second` on the long run."""

    __slots__ = ("_at", "_burst", "_left", "_per_second")

    def __init__(self, *, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = float(burst)
        self._at = now

    def take(self, now: float) -> float:
        """Take one and return 0, or return the seconds after which there is one."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._per_second
        self._left -= 1
        return 0.0


class ContractWallets:
    """Confirms signatures by the wallets' contracts."""

    def __init__(
        self,
        probe: ContractProbe,
        database: Database,
        *,
        monotonic: Callable[[], float],
        limits: CheckLimits | None = None,
    ) -> None:
        self._probe = probe
        self._database = database
        self._monotonic = monotonic
        self._limits = limits or CheckLimits()
        self._answers: OrderedDict[bytes, tuple[float, ContractCheck | None]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[ContractCheck | None]] = {}
        self._wallets: OrderedDict[Address, Allowance] = OrderedDict()
        self._all = Allowance(
            per_second=self._limits.all_per_second,
            burst=self._limits.all_burst,
            now=monotonic(),
        )

    async def confirmed(self, question: Question) -> ContractCheck | None:
        """Return where the wallet's contract confirmed a signature, None where it does not.

        Raises:
            SignatureNotCheckable: the chain gave no answer that counts. Never a yes, never a no.
            TooManySignatureChecks: this wallet has asked too often.
        """
        key = _key_of(question)
        known = self._answers.get(key)
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        task = self._asking.get(key)
        if task is None:
            self._admit(question.signer)
            task = asyncio.create_task(self._ask(question))
            self._asking[key] = task
            task.add_done_callback(lambda ended: self._end(key, ended))
        try:
            return await asyncio.shield(task)  # others may wait for the same answer
        except (Unanswered, TimeoutError) as error:
            reason = str(error) or "timed out"
            log.warning("a contract wallet's signature is not checkable", reason=reason)
            raise SignatureNotCheckable from None

    async def keep(self, question: Question, check: ContractCheck) -> None:
        """Store where a signature was confirmed; the first confirmation stays.

        Raises:
            DatabaseUnavailable: it may not be stored, so nothing may be done with it.
        """
        given = {
            "digest": question.digest,
            "signer": question.signer,
            "method": check.method.value,
            "number": check.block_number,
            "block": check.block_hash,
        }
        async with self._database.transaction() as tx:
            await tx.execute(KEEP, given)

    async def _ask(self, question: Question) -> ContractCheck | None:
        async with asyncio.timeout(self._limits.seconds):
            return await self._probe.ask(question, now=utc_now())

    def _end(self, key: bytes, ended: asyncio.Task[ContractCheck | None]) -> None:
        del self._asking[key]
        if ended.cancelled() or ended.exception() is not None:
            return
        check, limits = ended.result(), self._limits
        seconds = limits.no_seconds if check is None else limits.yes_seconds
        self._answers[key] = (self._monotonic() + seconds, check)
        self._answers.move_to_end(key)
        if len(self._answers) > limits.remembered:
            self._answers.popitem(last=False)

    def _admit(self, wallet: Address) -> None:
        limits, now = self._limits, self._monotonic()
        mine = self._wallets.get(wallet)
        if mine is None:
            mine = Allowance(
                per_second=limits.wallet_per_second, burst=limits.wallet_burst, now=now
            )
            self._wallets[wallet] = mine
            if len(self._wallets) > limits.remembered:
                self._wallets.popitem(last=False)
        self._wallets.move_to_end(wallet)
        if wait := mine.take(now):
            raise TooManySignatureChecks(retry_after_seconds=math.ceil(wait))
        if len(self._asking) >= limits.at_once or self._all.take(now):
            raise SignatureNotCheckable


def _key_of(question: Question) -> bytes:
    parts = question.digest + question.signer.encode() + question.signature
    return hashlib.sha256(parts).digest()
