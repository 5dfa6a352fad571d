"""From the logs of our contracts to the events that the books know. Pure.

Amounts are base units of the token. Every log of the treasury that its `eventCount` counts is one
event. A transfer of tokens to the treasury is a `plain-transfer` unless a deposit of the same
transaction accounts for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.chain.blocks import Log
from app.chain.events import (
    ANCHOR_EVENTS,
    TOKEN_EVENTS,
    TREASURY_EVENTS,
    ChainEvent,
    Deposited,
    ExitCancelled,
    ExitFinalized,
    ExitReduced,
    ExitRequested,
    PaidOut,
    PayoutFailed,
    Published,
    Refunded,
    SpendCommitted,
    Transfer,
    UnaccountedCredited,
    Withdrawn,
)
from ledger.encoding import Address


class EventKind(StrEnum):
    """What happened; the column `chain_event.kind`."""

    DEPOSITED = "deposited"
    WITHDRAWN = "withdrawn"
    SPEND_COMMITTED = "spend-committed"
    REFUNDED = "refunded"
    UNACCOUNTED_CREDITED = "unaccounted-credited"
    PAID_OUT = "paid-out"
    PAYOUT_FAILED = "payout-failed"
    EXIT_REQUESTED = "exit-requested"
    EXIT_REDUCED = "exit-reduced"
    EXIT_CANCELLED = "exit-cancelled"
    EXIT_FINALIZED = "exit-finalized"
    PLAIN_TRANSFER = "plain-transfer"
    PUBLISHED = "published"


NOT_COUNTED: Final = frozenset({EventKind.PLAIN_TRANSFER, EventKind.PUBLISHED})
"""Events that the treasury does not emit, so that its `eventCount` says nothing of them."""

CREDITING: Final = frozenset(
    {EventKind.DEPOSITED, EventKind.UNACCOUNTED_CREDITED, EventKind.REFUNDED}
)
"""Events that raise what the treasury ever credited to a wallet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OurContracts:
    """The contracts whose logs are read."""

    token: Address
    treasury: Address
    anchor: Address


@dataclass(frozen=True, slots=True, order=True)
class LogPlace:
    """Where a log stands: the same transaction in another block is another place."""

    block_number: int
    log_index: int
    block_hash: bytes
    transaction: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEvent:
    """One event as a node shows it.

    `payer` is the wallet, supplier address or sender that it is about, '' for none; `ref` the
    contract's 32 bytes: a deposit's reference, an id, a batch, a root; `extra` the rest, as text.
    """

    place: LogPlace
    kind: EventKind
    payer: Address | None
    amount: int
    ref: bytes | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenLogs:
    """What logs stand for, in the order of the chain."""

    events: list[SeenEvent]
    of_deposits: frozenset[LogPlace]
    """Transfers that deposits account for: no plain ones."""


def read_events(logs: Sequence[Log], ours: OurContracts) -> SeenLogs:
    """Return the events that logs of our contracts stand for.

    The logs are those of whole blocks, in any order. Tokens that moved elsewhere, transfers of
    nothing, roles, pauses and keys are no events.

    Raises:
        MalformedAnswer: a log has the topic of an event of ours and not its arguments.
    """
    found: list[SeenEvent] = []
    of_deposits: set[LogPlace] = set()
    transfers: dict[tuple[bytes, bytes], list[tuple[Log, Transfer]]] = {}
    for log in sorted(logs, key=lambda log: (log.block_number, log.index)):
        if log.address == ours.token:
            event = TOKEN_EVENTS.decode(log)
            if isinstance(event, Transfer) and event.recipient == ours.treasury and event.value:
                where = (log.block_hash, log.transaction_hash)
                transfers.setdefault(where, []).append((log, event))
        elif log.address == ours.treasury:
            event = TREASURY_EVENTS.decode(log)
            if event is not None:
                found.append(_of_treasury(event, _place(log)))
            if isinstance(event, Deposited):
                earlier = transfers.get((log.block_hash, log.transaction_hash), [])
                of_deposits |= _take_transfer(earlier, event)
        elif log.address == ours.anchor:
            event = ANCHOR_EVENTS.decode(log)
            if isinstance(event, Published):
                found.append(_published(event, _place(log)))
    plain = [_plain(log, event) for rest in transfers.values() for log, event in rest]
    return SeenLogs(sorted(found + plain, key=lambda event: event.place), frozenset(of_deposits))


def _take_transfer(earlier: list[tuple[Log, Transfer]], deposit: Deposited) -> set[LogPlace]:
    """Take the latest earlier transfer of the deposit's payer and amount out of the list.

    Return where it stands; nothing when there is none.
    """
    for number in reversed(range(len(earlier))):
        log, transfer = earlier[number]
        if (transfer.sender, transfer.value) == (deposit.payer, deposit.amount):
            del earlier[number]
            return {_place(log)}
    return set()


def _place(log: Log) -> LogPlace:
    return LogPlace(log.block_number, log.index, log.block_hash, log.transaction_hash)


def _plain(log: Log, event: Transfer) -> SeenEvent:
    return SeenEvent(
        place=_place(log), kind=EventKind.PLAIN_TRANSFER, payer=event.sender, amount=event.value
    )


def _published(event: Published, place: LogPlace) -> SeenEvent:
    extra = {"size": str(event.size), "previous_size": str(event.previous_size)}
    return SeenEvent(
        place=place, kind=EventKind.PUBLISHED, payer=None, amount=0, ref=event.root, extra=extra
    )


_KINDS: Final[Mapping[type[ChainEvent], EventKind]] = {
    Deposited: EventKind.DEPOSITED,
    Withdrawn: EventKind.WITHDRAWN,
    SpendCommitted: EventKind.SPEND_COMMITTED,
    Refunded: EventKind.REFUNDED,
    UnaccountedCredited: EventKind.UNACCOUNTED_CREDITED,
    PaidOut: EventKind.PAID_OUT,
    PayoutFailed: EventKind.PAYOUT_FAILED,
    ExitRequested: EventKind.EXIT_REQUESTED,
    ExitReduced: EventKind.EXIT_REDUCED,
    ExitCancelled: EventKind.EXIT_CANCELLED,
    ExitFinalized: EventKind.EXIT_FINALIZED,
}


def _of_treasury(event: ChainEvent, place: LogPlace) -> SeenEvent:
    """Return an event of the treasury with whom it is about, its reference and the rest."""
    ref: bytes | None = None
    extra: dict[str, str] = {}
    match event:
        case Deposited(payer, beneficiary, amount, ref):
            extra, payer = {"payer": payer}, beneficiary
        case Withdrawn(ref, payer, amount, fee):
            extra = {"fee": str(fee)}
        case SpendCommitted(batch, payer, amount, wanted):
            ref, extra = batch.to_bytes(32), {"wanted": str(wanted)}
        case Refunded(ref, payer, amount) | UnaccountedCredited(ref, payer, amount):
            pass
        case PaidOut(ref, payer, amount) | PayoutFailed(ref, payer, amount):
            pass
        case ExitRequested(payer, amount, ready_at):
            extra = {"ready_at": str(ready_at)}
        case ExitReduced(payer, amount) | ExitFinalized(payer, amount):
            pass
        case ExitCancelled(payer):
            amount = 0
        case _:
            raise AssertionError(type(event))
    return SeenEvent(
        place=place, kind=_KINDS[type(event)], payer=payer, amount=amount, ref=ref, extra=extra
    )
