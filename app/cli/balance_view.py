"""A wallet's money as rows of text: every bucket, then what is on its way."""

from typing import Final

from app.cli.shown import Rows
from app.wallets.schemas import BalanceOut

BUCKETS: Final = (
    "available",
    "held",
    "pending",
    "withdrawing",
    "exiting",
    "unaccounted",
    "owed",
)


def balance_rows(found: BalanceOut) -> Rows:
    """Return every bucket with its next step, then each item that is on its way."""
    rows = [("payer", found.payer), ("asset", found.asset)]
    for name in BUCKETS:
        step = found.next_steps.get(name)
        amount = str(getattr(found, name))
        rows.append((name, f"{amount}  {step}" if step else amount))
    for deposit in found.deposits:
        where = f"{deposit.transaction}, block {deposit.block}"
        rows.append(("deposit", f"{deposit.amount} in {where}: {deposit.next_step}"))
    for each in found.withdrawals:
        sent = f" in {each.transaction}" if each.transaction else ""
        rows.append(("withdrawal", f"{each.amount}, fee {each.fee}{sent}: {each.next_step}"))
    if found.exit is not None:
        amounts = f"{found.exit.wanted} wanted, {found.exit.set_aside} set aside"
        rows.append(("exit", f"{amounts}: {found.exit.next_step}"))
    for transfer in found.transfers:
        where = f"{transfer.transaction}, block {transfer.block}"
        rows.append(("transfer", f"{transfer.amount} in {where}: {transfer.next_step}"))
    return [*rows, ("as of", found.as_of)]
