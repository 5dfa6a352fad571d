"""Waiting until a gateway has credited a deposit; stopping to wait stops nothing."""

from collections.abc import Callable
from typing import Final

from app.client.client import Client
from app.wallets.schemas import BalanceOut
from ledger.money import parse_amount

POLL_SECONDS: Final = 1.0


def wait_until_credited(
    client: Client,
    transaction: bytes,
    *,
    before: BalanceOut,
    wait_seconds: float,
    say: Callable[[str], None],
) -> bool:
    """Return whether the gateway has credited a deposit within the time.

    It has when it showed the deposit as pending and does so no more, or when it never did and the
    wallet holds more than `before`, which was read before the deposit was sent.
    """
    name, seen, told, waited = "0x" + transaction.hex(), False, "", 0.0
    while True:
        found = client.balance()
        mine = next((each for each in found.deposits if each.transaction == name), None)
        if mine is None and (seen or _holds(found) > _holds(before)):
            return True
        seen = seen or mine is not None
        step = "wait until the gateway has seen it" if mine is None else mine.next_step
        if step != told:
            say(step)
            told = step
        if waited >= wait_seconds:
            return False
        client.pause(POLL_SECONDS)
        waited += POLL_SECONDS


def _holds(found: BalanceOut) -> int:
    amounts = (found.available, found.held, found.exiting, found.withdrawing)
    return sum(parse_amount(each) for each in amounts) - parse_amount(found.owed)
