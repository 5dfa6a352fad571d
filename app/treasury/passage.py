"""One round of a sender: what waits is followed, what is queued is signed, stored and sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from app.chain.errors import RpcRefused, RpcUnavailable
from app.chain.fees import Fees, replacement
from app.chain.keys import ChainKey
from app.chain.rpc import CallRequest, ChainRpc
from app.chain.transaction import Transaction
from app.treasury.errors import WrongSender
from app.treasury.sight import KeySight, look_at
from app.treasury.transaction import (
    Attempt,
    Broadcast,
    Finish,
    Mine,
    NonceTaken,
    Purpose,
    Replace,
    Rules,
    StoredTransaction,
    TransactionState,
    Unmine,
    Wait,
    gas_shortfall,
    missing_nonces,
    next_nonce,
    next_step,
    promised_gas,
)
from app.treasury.transaction_repository import WOULD_REVERT, Signed, TransactionRepository

IN_FLIGHT_LIMIT: Final = 16
"""Most signed transactions of a key that are not in the chain yet."""
GAS_MARGIN_PERCENT: Final = 25
"""Added to a node's estimate: state may change until the transaction is mined."""

MOST_GAS: Final = {Purpose.WITHDRAWAL: 400_000}
"""A withdrawal asks its wallet's own contract whether it signed: at our cost, so within reason.

A simulation gets no more either, and one that no node answers holds up nothing but itself.
"""

GAS_TOO_LOW: Final = "gas-too-low"
GAS_TOO_HIGH: Final = "gas-too-high"
NONCE_TAKEN: Final = "nonce-taken"
NOT_TAKEN: Final = "not-taken"
NOT_SIMULATED: Final = "not-simulated"

log = structlog.get_logger()


@dataclass(slots=True)
class Round:
    """What one round of a sender did, and what a person must look at."""

    held: bool = True
    """False when another worker sends for this key now."""
    signed: int = 0
    replaced: int = 0
    broadcast: int = 0
    mined: int = 0
    ended: int = 0
    postponed: int = 0
    taken: int = 0
    """Transactions whose nonce somebody else used."""
    missing: int = 0
    """Nonces that nobody owns before the first waiting transaction."""
    gas_short: int = 0
    """Native coin that is missing for the next transaction, in wei."""


@dataclass(slots=True)
class Passage:
    """The work of one round; its database calls are transactions of their own."""

    rpc: ChainRpc
    chain_id: int
    signer: ChainKey
    stored: TransactionRepository
    rules: Rules
    key: KeySight
    work: Round = field(default_factory=Round)
    _is_unanswered: bool = field(default=False, init=False)
    """Whether no node told how a stranger's code ends: in this round none is asked again."""

    # --- what owns a nonce ----------------------------------------------------------------------

    async def follow(self, waiting: Sequence[StoredTransaction]) -> None:
        """Move each transaction that owns a nonce one step, in order of nonces."""
        owned = [tx.nonce for tx in waiting if tx.nonce is not None]
        self.work.missing = len(missing_nonces(owned, self.key.nonce_latest))
        if self.work.missing:
            log.error("nonces are missing", sender=self.signer.address, missing=self.work.missing)
        for tx in waiting:
            await self._step(tx)

    async def _step(self, tx: StoredTransaction) -> None:
        sight = await look_at(self.rpc, tx, self.key)
        match next_step(tx, sight, rules=self.rules, now=await self.stored.now()):
            case Mine(inclusion):
                self.work.mined += await self.stored.mine(tx, inclusion)
            case Unmine():
                await self.stored.unmine(tx)
                log.warning("a transaction left the chain", transaction=str(tx.id))
            case Finish(succeeded):
                await self._finish(tx, succeeded=succeeded)
            case Broadcast(attempt):
                await self._broadcast(tx, attempt)
            case Replace(fees):
                await self._replace(tx, fees)
            case NonceTaken():
                self.work.taken += 1
                await self._note(tx, f"{NONCE_TAKEN}: nonce {tx.nonce} is used by another one")
            case Wait():
                pass

    async def _finish(self, tx: StoredTransaction, *, succeeded: bool) -> None:
        self.work.ended += 1
        if succeeded:
            await self.stored.finish(tx, TransactionState.DONE, None)
            return
        assert tx.mined is not None
        try:
            refused = await self._refusal(tx, block=tx.mined.hash)
        except RpcUnavailable:
            refused = None  # the reason is only told; a node need not keep that state
        reason = f"reverted in block {tx.mined.number}: {refused or 'by its state then'}"
        await self.stored.finish(tx, TransactionState.REVERTED, reason)
        log.error("a transaction reverted", transaction=str(tx.id), reason=reason)

    async def _broadcast(self, tx: StoredTransaction, attempt: Attempt) -> None:
        outcome = await self._offer(tx, attempt.hash, attempt.raw)
        if outcome == "underpriced":
            fees = replacement(attempt.fees, self.key.fees, cap=self.rules.fee_cap)
            if fees is not None:
                await self._replace(tx, fees)

    async def _replace(self, tx: StoredTransaction, fees: Fees) -> None:
        """Sign the same call at the same nonce with higher fees, store it, and send it."""
        assert tx.nonce is not None
        assert tx.gas is not None
        signed = await self._sign(tx, nonce=tx.nonce, gas=tx.gas, fees=fees)
        if await self.stored.add_attempt(tx, signed):
            self.work.replaced += 1
            log.info("a transaction is replaced", transaction=str(tx.id), max_fee=fees.max_fee)
            await self._offer(tx, signed.hash, signed.raw)

    async def _offer(self, tx: StoredTransaction, attempt_hash: bytes, raw: bytes) -> str:
        """Hand a stored form to the nodes and return their word; no answer says nothing."""
        try:
            sent = await self.rpc.send_raw(raw)
        except RpcUnavailable as error:
            log.warning("a broadcast had no answer", transaction=str(tx.id), reason=str(error))
            return "unknown"
        if sent.outcome in {"accepted", "already-known"}:
            await self.stored.note_broadcast(attempt_hash)
            self.work.broadcast += 1
        elif sent.outcome == "insufficient-funds":
            await self._note(tx, f"{GAS_TOO_LOW}: {sent.detail}")
        elif sent.outcome != "nonce-too-low":  # that one is mined: its receipt will tell
            await self._note(tx, f"{NOT_TAKEN}: {sent.detail}")
        return sent.outcome

    # --- what is queued -------------------------------------------------------------------------

    async def send(self, queued: Sequence[StoredTransaction]) -> None:
        """Sign and send what would succeed now, oldest first; the rest is postponed."""
        for tx in queued:
            waiting = await self.stored.on_the_way(self.signer.address)
            unmined = [each for each in waiting if (each.nonce or 0) >= self.key.nonce_latest]
            if len(unmined) >= IN_FLIGHT_LIMIT:
                return
            gas = await self._simulated(tx)
            if gas is None:
                continue
            if await self._is_short(tx, gas, promised_gas(unmined, self.key.nonce_latest)):
                return
            await self._send_one(tx, gas)

    async def _simulated(self, tx: StoredTransaction) -> int | None:
        """Return the gas limit for a call that would succeed now; else postpone it."""
        try:
            found = await self._tried(tx)
        except RpcUnavailable as error:
            if tx.purpose not in MOST_GAS:
                raise
            self._is_unanswered = True
            found = f"{NOT_SIMULATED}: {error}"
        if isinstance(found, int):
            return found
        now = await self.stored.now()
        await self.stored.postpone(tx, found, now + self.rules.retry_after(tx.tries))
        self.work.postponed += 1
        log.warning("a transaction waits", transaction=str(tx.id), reason=found)
        return None

    async def _tried(self, tx: StoredTransaction) -> int | str:
        """Return the gas limit for a call that would succeed now; else why it would not."""
        most = MOST_GAS.get(tx.purpose)
        if most is not None and self._is_unanswered:
            return f"{NOT_SIMULATED}: no node answered another one"
        refused = await self._refusal(tx)
        if refused is None:
            try:
                estimate = await self.rpc.estimate_gas(self._call(tx))
            except RpcRefused as error:
                refused = error.name or str(error)
            else:
                gas = estimate * (100 + GAS_MARGIN_PERCENT) // 100
                if most is None or gas <= most:
                    return gas
                refused = f"{GAS_TOO_HIGH}: {gas}"
        return f"{WOULD_REVERT}: {refused}"

    async def _is_short(self, tx: StoredTransaction, gas: int, promised: int) -> bool:
        balance = await self.rpc.balance(self.signer.address)
        missing = gas_shortfall(balance=balance, promised=promised, gas=gas, fees=self.key.fees)
        if missing == 0:
            return False
        self.work.gas_short = missing
        self.work.postponed += 1
        reason = f"{GAS_TOO_LOW}: {missing} wei more are needed at {self.signer.address}"
        await self.stored.postpone(tx, reason, await self.stored.now() + self.rules.gas_retry)
        log.error("out of gas money", sender=self.signer.address, missing_wei=missing)
        return True

    async def _send_one(self, tx: StoredTransaction, gas: int) -> None:
        last = await self.stored.last_nonce(self.signer.address)
        nonce = next_nonce(last, self.key.nonce_latest)
        signed = await self._sign(tx, nonce=nonce, gas=gas, fees=self.key.fees)
        if await self.stored.sign(tx, signed, nonce=nonce, gas=gas):
            self.work.signed += 1
            await self._offer(tx, signed.hash, signed.raw)

    # --- parts ----------------------------------------------------------------------------------

    async def _sign(self, tx: StoredTransaction, *, nonce: int, gas: int, fees: Fees) -> Signed:
        """Return a signed form; only what this key signed is ever stored."""
        unsigned = Transaction(
            chain_id=self.chain_id,
            nonce=nonce,
            to=tx.to,
            data=tx.data,
            gas=gas,
            max_fee=fees.max_fee,
            priority_fee=fees.priority_fee,
        )
        signed = await self.signer.sign(unsigned)
        if signed.sender != tx.sender:
            raise WrongSender(count=1, sender=signed.sender)
        return Signed(hash=signed.hash, raw=signed.raw, fees=fees)

    async def _refusal(self, tx: StoredTransaction, block: bytes | None = None) -> str | None:
        """Return why a call reverts, at the latest block or at one; None when it does not."""
        try:
            await self.rpc.call(self._call(tx), block or "latest")
        except RpcRefused as error:
            return error.name or str(error)
        return None

    def _call(self, tx: StoredTransaction) -> CallRequest:
        gas = MOST_GAS.get(tx.purpose)
        return CallRequest(to=tx.to, data=tx.data, sender=self.signer.address, gas=gas)

    async def _note(self, tx: StoredTransaction, reason: str) -> None:
        """Store and log why a transaction that owns a nonce does not move; it keeps its place."""
        await self.stored.postpone(tx, reason, await self.stored.now())
        log.error("a transaction does not move", transaction=str(tx.id), reason=reason)
