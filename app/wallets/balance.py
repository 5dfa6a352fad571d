"""A wallet's money, bucket by bucket, and what can be done about each. Pure.

Every nano that a wallet has with us, or that is on its way in or out, is in exactly one bucket.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from ledger.money import ZERO, Nano, format_amount

EXIT_WINDOW: Final = timedelta(hours=72)
"""How long a ripe exit may be finalized; the contract's `EXIT_WINDOW`."""

Depth = Literal["safe", "finalized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The numbers of the latest blocks at the three depths."""

    latest: int
    safe: int
    finalized: int

    def left(self, block: int, depth: Depth) -> int:
        """Return how many blocks `depth` has yet to advance to reach `block`; 0 when it has."""
        reached = self.safe if depth == "safe" else self.finalized
        return max(block - reached, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeposit:
    """A deposit that a node shows and that is not credited yet."""

    amount: Nano
    transaction: bytes
    block: int
    waits_for: Depth
    blocks_left: int | None
    """Blocks until that depth; None while no node says how far it is."""

    def next_step(self) -> str:
        """Return what to do."""
        if self.blocks_left is None:
            return f"wait until block {self.block} is {self.waits_for}"
        if self.blocks_left == 0:
            return "wait a moment: it is being credited"
        return f"wait {_blocks(self.blocks_left)}, until block {self.block} is {self.waits_for}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWithdrawal:
    """A withdrawal that is neither paid nor proved to be unpayable."""

    id: UUID
    amount: Nano
    fee: Nano
    deadline: datetime
    transaction: bytes | None
    """The latest form that a node has taken."""
    block: int | None
    """Where it was mined."""
    blocks_left: int | None
    trouble: str | None
    """Why the last try went wrong."""

    def next_step(self) -> str:
        """Return what to do."""
        if self.block is not None:
            left = "" if self.blocks_left is None else f", {_blocks(self.blocks_left)} more"
            return f"wait until block {self.block} is final{left}"
        if self.transaction is not None:
            return "wait until its transaction is mined"
        after = self.deadline.strftime("%Y-%m-%d %H:%M:%S UTC")
        held_up = f" ({self.trouble})" if self.trouble else ""
        return f"wait until it is sent{held_up}; if it is not by {after}, the money comes back"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenExit:
    """An exit that the wallet has asked the contract for."""

    wanted: Nano
    set_aside: Nano
    ready_at: datetime

    @property
    def until(self) -> datetime:
        """When it lapses."""
        return self.ready_at + EXIT_WINDOW

    def next_step(self, now: datetime) -> str:
        """Return what to do."""
        cancel = "`offpeak exit cancel` to go on here"
        if now < self.ready_at:
            return f"`offpeak exit finalize` from {_second(self.ready_at)} on, or {cancel}"
        if now < self.until:
            return f"`offpeak exit finalize` until {_second(self.until)}, or {cancel}"
        return "it has lapsed: wait until the money is available again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unaccounted:
    """Tokens that the wallet sent to the treasury by a plain transfer, not by a deposit."""

    event: UUID
    amount: Nano
    transaction: bytes
    block: int
    is_final: bool
    is_claimed: bool

    def next_step(self) -> str:
        """Return what to do."""
        if not self.is_final:
            return f"wait until block {self.block} is final, then claim it"
        if self.is_claimed:
            return "wait: your claim is on its way to the chain"
        return f"`offpeak wallet claim {self.event}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What a wallet holds at `as_of`, by the database clock; each bucket apart, in nano.

    `pending` is deposited and not yet deep enough, `withdrawing` is on its way out, `exiting` set
    aside for an exit without us, `unaccounted` sent without a deposit. `owed` is what the chain
    took back after it had been spent: nobody has it, the wallet is frozen until it is covered.
    Lists hold the oldest items only, sums hold all.
    """

    as_of: datetime
    available: Nano = ZERO
    held: Nano = ZERO
    pending: Nano = ZERO
    withdrawing: Nano = ZERO
    exiting: Nano = ZERO
    unaccounted: Nano = ZERO
    owed: Nano = ZERO
    deposits: tuple[PendingDeposit, ...] = ()
    withdrawals: tuple[PendingWithdrawal, ...] = ()
    exit: OpenExit | None = None
    transfers: tuple[Unaccounted, ...] = ()

    def next_steps(self) -> dict[str, str]:
        """Return what can be done about each bucket that is not empty."""
        steps: dict[str, str] = {}
        if self.owed:
            steps["owed"] = (
                f"`offpeak deposit` at least {format_amount(self.owed)}: nothing new is accepted"
                " before"
            )
        if self.available:
            steps["available"] = "use it, or `offpeak withdraw all`"
        if self.exit is not None:
            steps["exiting"] = self.exit.next_step(self.as_of)
            if self.available:
                steps["available"] = "it can be used again when the exit has ended"
        if self.held:
            steps["held"] = "comes back, less the charge, when its jobs end: `offpeak job list`"
        for name, items in (
            ("pending", self.deposits),
            ("withdrawing", self.withdrawals),
            ("unaccounted", self.transfers),
        ):
            if items:
                steps[name] = items[0].next_step()
        return steps


def depths(amounts: list[Nano], *, not_final: Nano, safe_limit: Nano) -> list[Depth]:
    """Return which depth each of a wallet's pending deposits waits for, in their order.

    A deposit counts once it is safe while it and what the wallet was credited that is not final
    stay within the limit together; else once it is finalized.
    """
    found: list[Depth] = []
    for amount in amounts:
        if not_final + amount <= safe_limit:
            not_final = Nano(not_final + amount)
            found.append("safe")
        else:
            found.append("finalized")
    return found


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _second(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
