"""The treasury's background work in a worker: what is seen, and what is sent.

Any number of workers may run it. Senders hold their key's lock for a round, plans are made under
a lock of their own, and everything else is safe to do twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from prometheus_client import CollectorRegistry

from app.chain.keys import ChainKey, open_chain_key
from app.chain.rpc import ChainRpc
from app.config import Settings
from app.db.engine import Database
from app.kit.periodic import Periodic
from app.treasury.claims import ClaimLoop
from app.treasury.commitments import CommitmentLoop, CommitmentTerms
from app.treasury.metrics import TreasuryMetrics
from app.treasury.parts import (
    new_ids,
    place_of,
    rules_of,
    status_terms,
    treasury_database_of,
    watcher_terms,
)
from app.treasury.payouts import PayoutLoop, PayoutTerms
from app.treasury.sender import ANCHOR_PURPOSES, OPERATOR_PURPOSES, Sender, SenderTerms
from app.treasury.status_loop import StatusLoop
from app.treasury.status_reader import StatusReader
from app.treasury.transaction import Purpose
from app.treasury.watcher import Watcher
from app.treasury.withdrawals import WithdrawalLoop
from ledger.encoding import Address

STATUS_SECONDS: Final = 60.0


@dataclass(slots=True)
class TreasuryWork:
    """Opens the keys, gives the loops, and closes what they used."""

    settings: Settings
    rpc: ChainRpc
    database: Database
    metrics: TreasuryMetrics
    anchor_key: ChainKey | None = field(default=None, init=False)
    operator_key: ChainKey | None = field(default=None, init=False)

    async def open(self) -> list[Periodic]:
        """Return the loops, once keys are open.

        Raises:
            KeyRefused: a configured key does not open.
        """
        settings = self.settings
        self.operator_key = await open_chain_key(
            "operator",
            keystore=settings.operator_keystore,
            password_file=settings.operator_password_file,
            command=settings.operator_signer_command,
        )
        self.anchor_key = await open_chain_key(
            "anchor",
            keystore=settings.anchor_keystore,
            password_file=settings.anchor_password_file,
            command=settings.anchor_signer_command,
        )
        loops = [self._watcher(), self._withdrawals(), self._status()]
        if self.operator_key is not None:
            loops += [self._sender("operator", self.operator_key, OPERATOR_PURPOSES)]
            loops += self._plans(self.operator_key.address)
        if self.anchor_key is not None:
            loops += [self._sender("anchor", self.anchor_key, ANCHOR_PURPOSES)]
        return loops

    async def close(self) -> None:
        """Close the connections to the database."""
        await self.database.dispose()

    def _loop(self, name: str, run_once: Callable[[], Awaitable[object]]) -> Periodic:
        return Periodic(name, self.settings.chain_poll_seconds, run_once)

    def _sender(self, name: str, key: ChainKey, purposes: Sequence[Purpose]) -> Periodic:
        terms = SenderTerms(
            chain_id=self.settings.chain_id, purposes=purposes, rules=rules_of(self.settings)
        )
        sender = Sender(self.database, self.rpc, key, terms)
        return self._loop(f"sender-{name}", sender.run_once)

    def _watcher(self) -> Periodic:
        watcher = Watcher(self.database, self.rpc, watcher_terms(self.settings))

        async def watch() -> None:
            try:
                await watcher.run_once()
            finally:
                self.metrics.show_watch(watcher.health)

        return self._loop("watcher", watch)

    def _withdrawals(self) -> Periodic:
        place = place_of(self.settings)
        loop = WithdrawalLoop(
            database=self.database,
            rpc=self.rpc,
            chain_id=place.chain_id,
            treasury=place.treasury,
            operator=self.operator_key.address if self.operator_key else None,
            ids=new_ids(),
        )
        return self._loop("withdrawals", loop.run_once)

    def _status(self) -> Periodic:
        keys = [key.address for key in (self.operator_key, self.anchor_key) if key is not None]
        reader = StatusReader(self.database, self.rpc, status_terms(self.settings, keys))
        loop = StatusLoop(reader, self.database, self.metrics)
        return Periodic("treasury-status", STATUS_SECONDS, loop.run_once)

    def _plans(self, operator: Address) -> list[Periodic]:
        place, token = place_of(self.settings), Address(self.settings.token_address.lower())
        commitments = CommitmentLoop(
            self.database,
            CommitmentTerms(
                chain_id=place.chain_id,
                treasury=place.treasury,
                token=token,
                operator=operator,
                interval=timedelta(seconds=self.settings.commit_interval_seconds),
            ),
            new_ids(),
        )
        payouts = PayoutLoop(
            self.database,
            self.rpc,
            PayoutTerms(
                chain_id=place.chain_id, treasury=place.treasury, token=token, operator=operator
            ),
            new_ids(),
        )
        claims = ClaimLoop(
            self.database, place.chain_id, place.treasury, operator=operator, ids=new_ids()
        )
        return [
            self._loop("claims", claims.run_once),
            self._loop("commitments", commitments.run_once),
            self._loop("payouts", payouts.run_once),
        ]


def treasury_work(settings: Settings, rpc: ChainRpc, registry: CollectorRegistry) -> TreasuryWork:
    """Return the work of the configured chain; `rpc` stays its caller's to close."""
    return TreasuryWork(settings, rpc, treasury_database_of(settings), TreasuryMetrics(registry))
