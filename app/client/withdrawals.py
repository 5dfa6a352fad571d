"""Taking prepaid money back through the gateway: what is signed, and what it may cost at most."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.client.chain_errors import FeeAbove, StillWaiting, TermsDiffer, WithdrawalEnded
from app.client.client import Client
from app.client.errors import WrongChain
from app.client.terms import Terms
from app.client.units import base_units
from app.treasury.schemas import TreasuryOut, WithdrawalOut
from ledger.authorization import Withdrawal
from ledger.encoding import parse_address
from ledger.money import NANO_PER_BASE_UNIT, Nano, parse_amount

VALID_SECONDS: Final = 6 * 3_600
"""How long the gateway may try; not paid by then, the money is available again."""
FEE_ROOM_PERCENT: Final = 50
"""How far the fee may rise between looking and paying, when the wallet names no limit."""
POLL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalPlan:
    """What the wallet is about to sign, and the fee as it is now."""

    message: Withdrawal
    fee: Nano

    @property
    def amount(self) -> Nano:
        """What leaves the balance."""
        return Nano(self.message.amount * NANO_PER_BASE_UNIT)

    @property
    def most_fee(self) -> Nano:
        """The most that is kept of it for gas."""
        return Nano(self.message.max_fee * NANO_PER_BASE_UNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How much, None for all that is available; and the highest fee, None for the usual room."""

    amount: Nano | None
    max_fee: Nano | None


def plan_withdrawal(
    client: Client, wish: Wish, *, now: int, nonce: bytes, chain_id: int | None = None
) -> WithdrawalPlan:
    """Return a withdrawal to the wallet itself, ready to be signed.

    Args:
        client: The gateway and the wallet.
        wish: How much, and at what cost at most.
        now: Unix seconds.
        nonce: 32 random bytes.
        chain_id: What a node of the chain says its id is, read just now, where one is known.

    Raises:
        WrongChain, TermsDiffer: the gateway or the node are not of what the wallet signs for.
        FeeAbove: the fee is above the limit, or not below the amount.
        NotBaseUnits: the amount is finer than the token, or there is nothing.
    """
    offered = client.treasury()
    check_terms(client.terms, offered, chain_id=chain_id)
    fee = parse_amount(offered.withdrawal_fee or "0")
    amount = wish.amount
    if amount is None:
        available = parse_amount(client.balance().available)
        amount = Nano(available - available % NANO_PER_BASE_UNIT)
    base = base_units(amount)
    limit = _fee_limit(fee) if wish.max_fee is None else wish.max_fee
    if fee > limit:
        raise FeeAbove(fee=fee, limit=limit)
    # the contract takes no fee that eats it all
    limit = Nano(min(limit, amount - NANO_PER_BASE_UNIT))
    if fee > limit:
        raise FeeAbove(fee=fee, limit=amount)
    message = Withdrawal(
        payer=client.wallet.address,
        token=client.terms.token,
        amount=base,
        max_fee=limit // NANO_PER_BASE_UNIT,
        nonce=nonce,
        deadline=now + VALID_SECONDS,
    )
    return WithdrawalPlan(message=message, fee=fee)


def check_terms(terms: Terms, offered: TreasuryOut, *, chain_id: int | None) -> None:
    """Return if gateway and node are of the chain and the contracts that the wallet signs for.

    Raises:
        WrongChain, TermsDiffer: they are not; nothing was signed.
    """
    for found, of in ((offered.chain_id, "gateway"), (chain_id, "node")):
        if found is not None and found != terms.chain_id:
            raise WrongChain(expected=terms.chain_id, found=found, of=of)
    for name, ours, theirs in (
        ("treasury", terms.treasury, offered.treasury),
        ("token", terms.token, offered.token),
    ):
        if parse_address(theirs) != ours:
            raise TermsDiffer(name, expected=ours, found=theirs)


def wait_until_paid(
    client: Client, asked: WithdrawalOut, *, wait_seconds: float, say: Callable[[str], None]
) -> WithdrawalOut:
    """Return the withdrawal once it is paid and that is final.

    Raises:
        WithdrawalEnded: it was not paid; the money is available again.
        StillWaiting: it goes on.
    """
    found, told, waited = asked, "", 0.0
    while found.state == "pending":
        if found.next_action != told:
            say(found.next_action)
            told = found.next_action
        if waited >= wait_seconds:
            raise StillWaiting(
                f"{asked.id} is not final yet",
                waited_seconds=wait_seconds,
                look="offpeak wallet balance",
            )
        client.pause(POLL_SECONDS)
        waited += POLL_SECONDS
        found = client.withdrawal(asked.id)
    if found.state == "failed":
        raise WithdrawalEnded(found.id, reason=found.reason or "no reason given")
    return found


def _fee_limit(fee: Nano) -> Nano:
    room = -(-fee * FEE_ROOM_PERCENT // 100)
    return Nano(-(-(fee + room) // NANO_PER_BASE_UNIT) * NANO_PER_BASE_UNIT)
