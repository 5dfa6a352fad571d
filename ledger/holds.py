"""One wallet's books in plain Python: available, held, and one resolution per hold.

Production keeps these rules in Postgres; this is the model that tests compare it with, and the
shortest statement of what must hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from ledger.errors import (
    BadAmount,
    ChargeExceedsHold,
    DuplicateHold,
    FundsOnHold,
    HoldResolved,
    InsufficientFunds,
    UnknownHold,
)
from ledger.money import MAX_NANO, ZERO, Nano


class ResolutionKind(StrEnum):
    """How a hold ended."""

    SETTLED = "settled"
    RELEASED = "released"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Resolution:
    """A hold's one end: `charged` + `released` is the hold."""

    kind: ResolutionKind
    charged: Nano
    released: Nano


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet's balance and holds. Each method returns the next state and changes nothing."""

    available: Nano = ZERO
    held: Nano = ZERO
    open_holds: Mapping[UUID, Nano] = field(default_factory=dict)
    resolutions: Mapping[UUID, Resolution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Assert what every state keeps."""
        assert self.available >= 0
        assert self.held == sum(self.open_holds.values())
        assert not self.open_holds.keys() & self.resolutions.keys()

    @property
    def charged(self) -> Nano:
        """The sum of all charges taken so far."""
        return Nano(sum(end.charged for end in self.resolutions.values()))

    def credit(self, amount: Nano) -> "Wallet":
        """Add to available.

        Raises:
            BadAmount: not positive, or the balance would exceed `MAX_NANO`.
        """
        _require_positive(amount)
        if self.available + self.held + amount > MAX_NANO:
            raise BadAmount(amount, "the balance would exceed the books' limit")
        return replace(self, available=Nano(self.available + amount))

    def place_hold(self, hold: UUID, amount: Nano) -> "Wallet":
        """Move `amount` from available to held under the id `hold`.

        Raises:
            BadAmount: not positive.
            DuplicateHold: the id was used before, ended or not.
            FundsOnHold: too little available, but enough together with what is held.
            InsufficientFunds: too little even then.
        """
        _require_positive(amount)
        if hold in self.open_holds or hold in self.resolutions:
            raise DuplicateHold(hold)
        if self.available < amount:
            if self.available + self.held >= amount:
                raise FundsOnHold(available=self.available, held=self.held, required=amount)
            raise InsufficientFunds(available=self.available, required=amount)
        return replace(
            self,
            available=Nano(self.available - amount),
            held=Nano(self.held + amount),
            open_holds={**self.open_holds, hold: amount},
        )

    def settle(self, hold: UUID, charge: Nano) -> "Wallet":
        """End a hold with `charge` taken and the rest given back; a charge of zero releases it.

        Raises:
            UnknownHold, HoldResolved: there is no such open hold.
            BadAmount: the charge is negative.
            ChargeExceedsHold: the charge is more than the buyer authorized.
        """
        amount = self._open(hold)
        if charge < 0:
            raise BadAmount(charge, "a charge is not negative")
        if charge > amount:
            raise ChargeExceedsHold(charge=charge, hold=amount)
        kind = ResolutionKind.SETTLED if charge else ResolutionKind.RELEASED
        return self._resolve(hold, kind, charge)

    def release(self, hold: UUID) -> "Wallet":
        """End a hold with no charge: the job failed.

        Raises:
            UnknownHold, HoldResolved: there is no such open hold.
        """
        self._open(hold)
        return self._resolve(hold, ResolutionKind.RELEASED, ZERO)

    def expire(self, hold: UUID) -> "Wallet":
        """End a hold with no charge: its time ran out.

        Raises:
            UnknownHold, HoldResolved: there is no such open hold.
        """
        self._open(hold)
        return self._resolve(hold, ResolutionKind.EXPIRED, ZERO)

    def _open(self, hold: UUID) -> Nano:
        if hold in self.resolutions:
            raise HoldResolved(hold, self.resolutions[hold].kind)
        if hold not in self.open_holds:
            raise UnknownHold(hold)
        return self.open_holds[hold]

    def _resolve(self, hold: UUID, kind: ResolutionKind, charge: Nano) -> "Wallet":
        amount = self.open_holds[hold]
        rest = Nano(amount - charge)
        return Wallet(
            available=Nano(self.available + rest),
            held=Nano(self.held - amount),
            open_holds={key: value for key, value in self.open_holds.items() if key != hold},
            resolutions={**self.resolutions, hold: Resolution(kind, charge, rest)},
        )


def _require_positive(amount: Nano) -> None:
    if amount <= 0:
        raise BadAmount(amount, "not positive")
