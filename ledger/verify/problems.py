"""What is wrong between receipts that are each right."""

from dataclasses import dataclass
from enum import StrEnum

from ledger.encoding import Address


class Kind(StrEnum):
    """Which kind of contradiction it is."""

    GAP = "gap"
    FORK = "fork"
    CORRECTION = "correction"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not fit, in words."""

    kind: Kind
    payer: Address
    detail: str
