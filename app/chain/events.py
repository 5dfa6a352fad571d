"""The events of our contracts as values. Amounts are base units of the token.

Each class repeats its Solidity declaration; its fields are the same in the same order, snake_case.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from app.chain.abi import Event
from app.chain.blocks import Log
from ledger.encoding import Address


class ChainEvent:
    """Base of the event classes: frozen slotted dataclasses with an `EVENT`."""

    __slots__ = ()
    EVENT: ClassVar[Event]


@dataclass(frozen=True, slots=True)
class Deposited(ChainEvent):
    """Tokens of `payer` were credited to `beneficiary`; `ref` is the payer's own."""

    EVENT = Event(
        "Deposited(address indexed payer,address indexed beneficiary,uint256 amount,"
        "bytes32 indexed ref)"
    )
    payer: Address
    beneficiary: Address
    amount: int
    ref: bytes


@dataclass(frozen=True, slots=True)
class Withdrawn(ChainEvent):
    """The withdrawal with digest `id` was paid: `amount` - `fee` to the payer."""

    EVENT = Event("Withdrawn(bytes32 indexed id,address indexed payer,uint256 amount,uint256 fee)")
    id: bytes
    payer: Address
    amount: int
    fee: int


@dataclass(frozen=True, slots=True)
class SpendCommitted(ChainEvent):
    """A wallet's spending is `spent` in all, after the clamp; `wanted` was asked for."""

    EVENT = Event(
        "SpendCommitted(uint256 indexed batch,address indexed payer,uint256 spent,uint256 wanted)"
    )
    batch: int
    payer: Address
    spent: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Refunded(ChainEvent):
    """`amount` went from earned back to a wallet's deposits."""

    EVENT = Event("Refunded(bytes32 indexed id,address indexed payer,uint256 amount)")
    id: bytes
    payer: Address
    amount: int


@dataclass(frozen=True, slots=True)
class UnaccountedCredited(ChainEvent):
    """Tokens that came by plain transfer were credited."""

    EVENT = Event(
        "UnaccountedCredited(bytes32 indexed id,address indexed beneficiary,uint256 amount)"
    )
    id: bytes
    beneficiary: Address
    amount: int


@dataclass(frozen=True, slots=True)
class PaidOut(ChainEvent):
    """A supplier was paid from earned funds."""

    EVENT = Event("PaidOut(bytes32 indexed id,address indexed recipient,uint256 amount)")
    id: bytes
    recipient: Address
    amount: int


@dataclass(frozen=True, slots=True)
class PayoutFailed(ChainEvent):
    """The token refused this payout; its id may be tried again."""

    EVENT = Event("PayoutFailed(bytes32 indexed id,address indexed recipient,uint256 amount)")
    id: bytes
    recipient: Address
    amount: int


@dataclass(frozen=True, slots=True)
class ExitRequested(ChainEvent):
    """A wallet wants `amount` without us, from `ready_at` (Unix seconds) on."""

    EVENT = Event("ExitRequested(address indexed payer,uint256 amount,uint64 readyAt)")
    payer: Address
    amount: int
    ready_at: int


@dataclass(frozen=True, slots=True)
class ExitReduced(ChainEvent):
    """An open exit was cut to `amount`, what its wallet has left."""

    EVENT = Event("ExitReduced(address indexed payer,uint256 amount)")
    payer: Address
    amount: int


@dataclass(frozen=True, slots=True)
class ExitCancelled(ChainEvent):
    """A wallet gave its exit up."""

    EVENT = Event("ExitCancelled(address indexed payer)")
    payer: Address


@dataclass(frozen=True, slots=True)
class ExitFinalized(ChainEvent):
    """A wallet took `amount` out."""

    EVENT = Event("ExitFinalized(address indexed payer,uint256 amount)")
    payer: Address
    amount: int


@dataclass(frozen=True, slots=True)
class Published(ChainEvent):
    """The receipt log's root at `size` entries was anchored."""

    EVENT = Event("Published(uint64 indexed size,bytes32 root,uint64 previousSize)")
    size: int
    root: bytes
    previous_size: int


@dataclass(frozen=True, slots=True)
class KeyRegistered(ChainEvent):
    """`key` signs in this role from log size `from_size` on."""

    EVENT = Event("KeyRegistered(bytes32 indexed role,bytes key,uint64 fromSize)")
    role: bytes
    key: bytes
    from_size: int


@dataclass(frozen=True, slots=True)
class Transfer(ChainEvent):
    """ERC-20: `value` base units moved, a deposit's own transfer among them."""

    EVENT = Event("Transfer(address indexed from,address indexed to,uint256 value)")
    sender: Address
    recipient: Address
    value: int


class EventTable:
    """Events of one contract by their first topic."""

    def __init__(self, *kinds: type[ChainEvent]) -> None:
        """Take the classes to know."""
        self.kinds: Final[Mapping[bytes, type[ChainEvent]]] = {
            kind.EVENT.topic: kind for kind in kinds
        }

    def decode(self, log: Log) -> ChainEvent | None:
        """The event that a log of this contract is, None for one that is not in the table.

        Raises:
            MalformedAnswer: its topic is known, its arguments are not of that type.
        """
        kind = self.kinds.get(log.topics[0]) if log.topics else None
        if kind is None:
            return None
        make: Callable[..., ChainEvent] = kind
        return make(*kind.EVENT.arguments(log).values())


TREASURY_EVENTS: Final = EventTable(
    Deposited,
    Withdrawn,
    SpendCommitted,
    Refunded,
    UnaccountedCredited,
    PaidOut,
    PayoutFailed,
    ExitRequested,
    ExitReduced,
    ExitCancelled,
    ExitFinalized,
)
"""Exactly what the treasury's `eventCount` counts."""
ANCHOR_EVENTS: Final = EventTable(Published, KeyRegistered)
TOKEN_EVENTS: Final = EventTable(Transfer)
