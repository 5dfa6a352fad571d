"""Claims of plain transfers: asked for by a signature, credited on chain by us."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from app.chain.calls import credit_unaccounted
from app.db.engine import Database
from app.kit.ids import IdSource
from app.treasury.claim import PlainTransfer, SignedClaim, ToCredit, check_claim
from app.treasury.claim_repository import ClaimRepository
from app.treasury.errors import (
    TransferClaimed,
    TransferNotFinal,
    TransferNotFound,
    TransferNotYours,
    TreasuryError,
)
from app.treasury.transaction import Purpose
from app.treasury.transaction_repository import Order, TransactionRepository
from app.wallets.signatures import WalletSignatures, parse_signature
from ledger.authorization import SuspenseClaim
from ledger.encoding import Address, Domain, uuid_bytes32
from ledger.money import Nano

SHOWN: Final = 100
ROUND_LIMIT: Final = 100

REFUSALS: Final[Mapping[str, type[TreasuryError]]] = {
    "unknown": TransferNotFound,
    "not_yours": TransferNotYours,
    "claimed": TransferClaimed,
    "not_final": TransferNotFinal,
}


@dataclass(frozen=True, slots=True)
class ClaimService:
    """The wallet's side."""

    database: Database
    signatures: WalletSignatures
    domain: Domain
    ids: IdSource
    minimum: Nano
    """The least that is credited."""

    async def transfers(self, payer: Address) -> list[PlainTransfer]:
        """Return what a wallet sent by plain transfer and was not credited, the oldest `SHOWN`."""
        async with self.database.transaction() as tx:
            return await self._repository(tx).of_wallet(payer, limit=SHOWN)

    async def request(self, given: Mapping[str, object], signature: str) -> PlainTransfer:
        """Take the claim of a plain transfer, signed by who sent it, and return the transfer.

        The same signed message gets the same answer, whatever has become of its deadline.

        Raises:
            MalformedTypedData, BadSignature, WrongSigner, ContractWalletUnsupported
            TransferNotFound, TransferNotYours, TransferNotFinal, TransferClaimed
            ClaimDeadline, ClaimTooSmall
        """
        message = SuspenseClaim.parse(given)
        digest = message.digest(self.domain)
        signed = parse_signature(signature)
        await self.signatures.check_kept(digest, signed, signer=message.payer)
        async with self.database.transaction() as tx:
            repository = self._repository(tx)
            found = await repository.find(message.transaction, message.log_index)
            if found is None:
                raise TransferNotFound
            if found.payer != message.payer:
                raise TransferNotYours
            if found.claim_digest == digest:
                return found
            now = await repository.now()
            check_claim(message, found, minimum=self.minimum, now=now)
            claim = SignedClaim(message, digest, signed)
            code = await repository.request(self.ids.new(), found, claim)
            if code in REFUSALS:
                raise REFUSALS[code]
            stored = await repository.find(message.transaction, message.log_index)
            if stored is None:
                raise TransferNotFound
            return stored

    def _repository(self, tx: AsyncConnection) -> ClaimRepository:
        return ClaimRepository(tx, chain_id=self.domain.chain_id)


@dataclass(frozen=True, slots=True)
class ClaimLoop:
    """Our side: sees to it that each claim is on its way to the chain. Any number may run."""

    database: Database
    """As role `offpeak_treasury`."""
    chain_id: int
    treasury: Address
    operator: Address
    ids: IdSource

    async def run_once(self) -> int:
        """Begin transactions for claims that wait; return how many were begun."""
        begun = 0
        async with self.database.transaction() as tx:
            repository = ClaimRepository(tx, chain_id=self.chain_id)
            stored = TransactionRepository(tx, chain_id=self.chain_id)
            now = await repository.now()
            for each in await repository.to_credit(limit=ROUND_LIMIT):
                if each.due(now):
                    begun += await stored.enqueue(
                        self.ids.new(), self._order(each), sender=self.operator
                    )
        return begun

    def _order(self, each: ToCredit) -> Order:
        data = credit_unaccounted(each.payer, each.amount, uuid_bytes32(each.claim))
        return Order(purpose=Purpose.CREDIT, subject=each.claim, to=self.treasury, data=data)
