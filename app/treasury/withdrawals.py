"""Withdrawals: asked for by a signature, relayed by us, ended by what is final on chain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from app.chain.blocks import Block
from app.chain.calls import WithdrawalCall
from app.chain.contracts import TreasuryContract
from app.chain.errors import ChainError
from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.kit.clock import from_unix_seconds
from app.kit.ids import IdSource
from app.treasury.chain_view import ChainView
from app.treasury.errors import (
    TooManyWithdrawals,
    WithdrawalNonceUsed,
    WithdrawalNotFound,
    WithdrawalsHalted,
)
from app.treasury.fee import base_units_down, nano
from app.treasury.transaction import Purpose
from app.treasury.transaction_repository import Order, TransactionRepository
from app.treasury.withdrawal import (
    StoredWithdrawal,
    WithdrawalTerms,
    check_withdrawal,
)
from app.treasury.withdrawal_repository import Outcome, Request, WithdrawalRepository
from app.wallets.balance import Heads
from app.wallets.errors import ExitOpen, WalletOwes
from app.wallets.heads import ChainHeads
from app.wallets.signatures import WalletSignatures, parse_signature
from ledger.accounts import wallet_account
from ledger.authorization import Withdrawal
from ledger.encoding import Address, Domain
from ledger.errors import FundsOnHold, InsufficientFunds
from ledger.money import Nano
from ledger.strict_json import parse_object

ROUND_LIMIT: Final = 100
"""Most withdrawals that one round of the loop begins, or ends."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WithdrawalService:
    """The wallet's side."""

    database: Database
    signatures: WalletSignatures
    view: ChainView
    terms: WithdrawalTerms
    domain: Domain
    ids: IdSource
    heads: ChainHeads | None = None

    async def heads_now(self) -> Heads | None:
        """Return how far the chain is, None while nobody says."""
        return await self.heads.now() if self.heads is not None else None

    async def request(self, given: Mapping[str, object], signature: str) -> StoredWithdrawal:
        """Set money aside for a withdrawal that its wallet signed, and return it.

        The same signed message gets the same withdrawal, whatever has become of fee and deadline.

        Raises:
            MalformedTypedData, BadSignature, WrongSigner, ContractWalletUnsupported
            WithdrawalToken, WithdrawalDeadline, WithdrawalTooSmall, WithdrawalFeeTooLow, BadAmount
            WithdrawalNonceUsed, TooManyWithdrawals, WithdrawalsHalted, ExitOpen, WalletOwes
            InsufficientFunds, FundsOnHold, ChainNotConfigured, FeeUnknown
        """
        message = Withdrawal.parse(given)
        digest = message.digest(self.domain)
        signed = parse_signature(signature)
        await self.signatures.check_kept(digest, signed, signer=message.payer)
        async with self.database.transaction() as tx:
            repository = WithdrawalRepository(tx)
            before, now = await repository.by_digest(digest), await repository.now()
        if before is not None:
            return await self.one(before.id, payer=message.payer)
        fee = await self.view.fee()
        check_withdrawal(message, fee=fee, terms=self.terms, now=now)
        request = Request(
            id=self.ids.new(),
            digest=digest,
            message=message,
            signature=signed,
            fee=fee,
            deadline=from_unix_seconds(message.deadline),
        )
        async with self.database.transaction() as tx:
            outcome = await WithdrawalRepository(tx).request(request, asset=self.terms.token)
        if outcome.id is None or outcome.code not in {"ok", "duplicate"}:
            raise _refusal(outcome, required=nano(message.amount))
        return await self.one(outcome.id, payer=message.payer)

    async def one(self, withdrawal_id: UUID, *, payer: Address) -> StoredWithdrawal:
        """Return one of the wallet's withdrawals.

        Raises:
            WithdrawalNotFound: it has none with this id.
        """
        account = wallet_account(payer, self.terms.token)
        async with self.database.transaction() as tx:
            found = await WithdrawalRepository(tx).of_wallet(withdrawal_id, account)
        if found is None:
            raise WithdrawalNotFound
        return found

    async def page(
        self, payer: Address, *, before: UUID | None, limit: int
    ) -> list[StoredWithdrawal]:
        """Return up to `limit` of the wallet's withdrawals, newest first, older than `before`."""
        account = wallet_account(payer, self.terms.token)
        async with self.database.transaction() as tx:
            return await WithdrawalRepository(tx).page(account, before=before, limit=limit)


REFUSALS: Final[Mapping[str, type[Exception]]] = {
    "nonce_used": WithdrawalNonceUsed,
    "halted": WithdrawalsHalted,
    "exit_open": ExitOpen,
    "wallet_owes": WalletOwes,
    "too_many_pending": TooManyWithdrawals,
}


def _refusal(outcome: Outcome, *, required: Nano) -> Exception:
    available, held = outcome.available, outcome.held
    if outcome.code == "insufficient_funds":
        return InsufficientFunds(available=available, required=required)
    if outcome.code == "funds_on_hold":
        return FundsOnHold(available=available, held=held, required=required)
    return REFUSALS[outcome.code]()


@dataclass(frozen=True, slots=True)
class WithdrawalLoop:
    """Our side: sees to it that each pending withdrawal is on its way, or ends on proof."""

    database: Database
    """As role `offpeak_treasury`."""
    rpc: ChainRpc
    chain_id: int
    treasury: Address
    operator: Address | None
    """Who sends; None where this process has no operator key, then nothing is begun here."""
    ids: IdSource

    async def run_once(self) -> int:
        """Begin transactions for what waits, drop those not wanted; return how many were begun.

        While the ledger is halted nothing is begun, and what is not signed yet is dropped.

        Raises:
            RpcUnavailable: nobody shows a finalized block; what is overdue waits.
        """
        async with self.database.transaction() as tx:
            repository = WithdrawalRepository(tx)
            stored = TransactionRepository(tx, chain_id=self.chain_id)
            for unwanted in await repository.unwanted(limit=ROUND_LIMIT):
                await stored.cancel(unwanted)
            begun = await self._begin(repository, stored)
        await self.fail_overdue()
        return begun

    async def _begin(self, repository: WithdrawalRepository, stored: TransactionRepository) -> int:
        if await stored.is_halted():
            await stored.cancel_queued(Purpose.WITHDRAWAL)  # what is signed is out of our hands
            return 0
        if self.operator is None:
            return 0
        begun, now = 0, await repository.now()
        for each in await repository.to_relay(limit=ROUND_LIMIT):
            if each.due(now):
                order = self._order(each.withdrawal)
                begun += await stored.enqueue(self.ids.new(), order, sender=self.operator)
        return begun

    def _order(self, stored: StoredWithdrawal) -> Order:
        message = Withdrawal.parse(parse_object(stored.message, what="withdrawal"))
        call = WithdrawalCall(
            payer=message.payer,
            amount=message.amount,
            max_fee=message.max_fee,
            nonce=message.nonce,
            deadline=message.deadline,
            fee=base_units_down(stored.fee),
            signature=stored.signature,
        )
        return Order(
            purpose=Purpose.WITHDRAWAL, subject=stored.id, to=self.treasury, data=call.data()
        )

    # --- the end of what was not paid -----------------------------------------------------------

    async def fail_overdue(self) -> int:
        """Give back what can never be paid any more; return how many withdrawals ended so.

        The proof: at a finalized block later than the deadline the contract has not used the
        digest. Every URL that answers must show this block and say so.
        """
        final = await self.rpc.block("finalized")
        if final is None:
            return 0
        before = from_unix_seconds(final.timestamp)
        async with self.database.transaction() as tx:
            overdue = await WithdrawalRepository(tx).overdue(before=before, limit=ROUND_LIMIT)
        failed = 0
        for stored in overdue:
            if await self._is_unpaid(stored, final):
                async with self.database.transaction() as tx:
                    code = await WithdrawalRepository(tx).fail(
                        stored.id, reason="not paid before its deadline", block=final.hash
                    )
                failed += code == "ok"
                log.warning("a withdrawal was not paid", withdrawal=str(stored.id), code=code)
        return failed

    async def _is_unpaid(self, stored: StoredWithdrawal, final: Block) -> bool:
        answers = 0
        for one in self.rpc.by_url():
            try:
                header = await one.block(final.number)
                used = await TreasuryContract(one, self.treasury).used_id(stored.digest, final.hash)
            except ChainError:
                continue
            if header is None or header.hash != final.hash or used:
                return False
            answers += 1
        return answers > 0
