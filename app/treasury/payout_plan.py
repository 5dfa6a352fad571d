"""What suppliers are owed and which payouts go into the next transaction: pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from app.treasury.fee import base_units_down, nano
from app.treasury.transaction import rest_after
from ledger.encoding import Address
from ledger.money import Nano

BATCH_LIMIT: Final = 50
"""Most payouts in one transaction."""
RETRY_FIRST: Final = timedelta(hours=1)
RETRY_MOST: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplierStatement:
    """What one supplier earned and got, in nano: `accrued` = `paid` + `pending` + `owed`."""

    supplier_id: UUID
    name: str
    address: Address | None
    """Where it wants to be paid; None until it is set."""
    accrued: Nano
    paid: Nano
    pending: Nano

    @property
    def owed(self) -> Nano:
        """What no payout was made for yet."""
        return Nano(self.accrued - self.paid - self.pending)

    @property
    def to_be_paid(self) -> int:
        """What a payout would carry now, in whole base units: the rest stays owed."""
        return max(base_units_down(self.owed), 0) if self.address is not None else 0

    @property
    def rest(self) -> Nano:
        """What stays owed after that payout."""
        return Nano(self.owed - nano(self.to_be_paid))


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPayout:
    """A payout on its way, and what the chain said of it so far."""

    id: UUID
    recipient: Address
    amount: int
    """Base units."""
    failures: int
    """How often the token refused the transfer (`PayoutFailed`)."""
    failed_at: datetime | None

    def due(self, now: datetime) -> bool:
        """Return whether it may be tried: 1 h after a refusal, doubled with each, 24 h at most."""
        if self.failed_at is None:
            return True
        rest = rest_after(max(self.failures - 1, 0), first=RETRY_FIRST, most=RETRY_MOST)
        return now >= self.failed_at + rest


def payout_batch(
    pending: Sequence[PendingPayout], *, funds: int, now: datetime
) -> list[PendingPayout]:
    """Return the payouts of the next transaction: oldest first, as far as the funds go.

    One that is larger than what is left does not hold up smaller ones behind it.

    Args:
        pending: In order of age.
        funds: The lesser of what is earned and of what the day's limit leaves, in base units.
        now: The present.
    """
    chosen: list[PendingPayout] = []
    for payout in pending:
        if len(chosen) == BATCH_LIMIT:
            break
        if payout.amount <= funds and payout.due(now):
            chosen.append(payout)
            funds -= payout.amount
    return chosen
