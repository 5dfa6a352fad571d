"""What the chain must be told of wallets' spending: pure.

The chain's net spend of a wallet is what was committed less what was refunded. Ours is its charges
less corrections, rounded up to base units. `commitSpend` takes cumulative sums, so telling it twice
changes nothing; a refund has an id that follows from the sums before it, so two are one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.treasury.fee import base_units_up
from ledger.encoding import Address
from ledger.hashing import sha256
from ledger.money import Nano

BATCH_LIMIT: Final = 100
"""Most wallets in one `commitSpend`."""
REFUND_LIMIT: Final = 20
"""Most refunds that one round begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletSpend:
    """One wallet as the ledger and the final blocks have it; sums of the chain in base units."""

    account_id: UUID
    payer: Address
    net: Nano
    """Charges less corrections."""
    spent: int
    """What the chain last said it had been told, in all."""
    refunded: int
    """What the chain gave back, in all."""
    room: int
    """What the chain holds for the wallet, by its final events: more than that it would clamp."""
    is_leaving: bool = False
    """Whether an exit is open: what is not told before it ripens leaves with it."""


@dataclass(frozen=True, slots=True)
class Refund:
    """Spending to take back, in base units."""

    payer: Address
    amount: int
    id: bytes
    """32 bytes, used once on the chain."""

    @property
    def subject(self) -> UUID:
        """What the transaction is about: half of the id."""
        return UUID(bytes=self.id[:16])


@dataclass(frozen=True, slots=True)
class CommitmentPlan:
    """What to send now: one batch of cumulative sums, and refunds."""

    payers: Sequence[Address]
    spent: Sequence[int]
    refunds: Sequence[Refund]


def plan_commitments(wallets: Sequence[WalletSpend], *, treasury: Address) -> CommitmentPlan:
    """Return what brings the chain's sums to ours: who leaves first, then the largest differences.

    A wallet for which the chain holds nothing is left out: a made-up balance, or one whose deposit
    was lost. What the contract clamps is told again once the chain holds more for the wallet.
    """
    commits: list[tuple[bool, int, Address, int]] = []
    refunds: list[Refund] = []
    for wallet in wallets:
        target = wallet.refunded + base_units_up(wallet.net)
        missing = target - wallet.spent
        if missing > 0 and wallet.room > 0:
            commits.append((not wallet.is_leaving, -missing, wallet.payer, target))
        elif missing < 0:
            refunds.append(Refund(wallet.payer, -missing, refund_id(wallet, treasury=treasury)))
    commits.sort()
    refunds.sort(key=lambda each: (-each.amount, each.payer))
    chosen = commits[:BATCH_LIMIT]
    return CommitmentPlan(
        payers=[payer for _, _, payer, _ in chosen],
        spent=[target for _, _, _, target in chosen],
        refunds=refunds[:REFUND_LIMIT],
    )


def refund_id(wallet: WalletSpend, *, treasury: Address) -> bytes:
    """Return the id of the refund that follows on what was refunded before, 32 bytes.

    A second one made before the first is final has the same id, whatever its amount: the contract
    takes only one of them.
    """
    return sha256(f"offpeak-refund|{treasury}|{wallet.payer}|{wallet.refunded}".encode())
