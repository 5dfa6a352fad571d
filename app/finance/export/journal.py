"""What beancount and hledger share: account names, commodities, dates.

Debits are positive, as in the ledger's transfers: what the house holds is an asset, what it owes
wallets and suppliers a liability, its fees are income.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from app.finance.export.rows import Party
from ledger.accounts import AccountKind
from ledger.encoding import Address
from ledger.money import Nano, format_amount

_DAY_SECONDS: Final = 86_400
OPENING_ACCOUNT: Final = "Equity:Opening-Balances"
_ROOTS: Final[Mapping[AccountKind, str]] = {
    AccountKind.WALLET: "Liabilities:Wallets",
    AccountKind.SUPPLIER: "Liabilities:Suppliers",
    AccountKind.FEE: "Income:Fees",
    AccountKind.TREASURY: "Assets:Treasury",
    AccountKind.WITHDRAW_CLEARING: "Liabilities:Withdrawals",
    AccountKind.DEPOSIT_CLEARING: "Assets:Deposits",
    AccountKind.SUSPENSE: "Liabilities:Suspense",
    AccountKind.EXIT_CLEARING: "Liabilities:Exits",
    AccountKind.PAYOUT_CLEARING: "Liabilities:Payouts",
    AccountKind.RECEIVABLE: "Assets:Receivable",
}


def account_name(party: Party) -> str:
    """Return an account's name, the same in both programs and in every export."""
    root = _ROOTS[party.kind]
    if party.kind is AccountKind.WALLET:
        return f"{root}:{party.owner}"
    return f"{root}:S-{party.owner}" if party.kind is AccountKind.SUPPLIER else root


def commodity(asset: Address) -> str:
    """Return a token's commodity: `T` and 20 of its address's digits; both programs take it."""
    return "T" + asset[2:22].upper()


def amount_text(nano: int) -> str:
    """Return an amount with nine decimals."""
    return format_amount(Nano(nano))


def day(seconds: int) -> str:
    """Return the UTC date of a moment."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def day_before(seconds: int) -> str:
    """Return the date before that of a moment."""
    return day(seconds - _DAY_SECONDS)


def day_after(seconds: int) -> str:
    """Return the date after that of a moment."""
    return day(seconds + _DAY_SECONDS)
