"""Who can own money here, and the id that follows from it."""

from enum import StrEnum
from uuid import UUID

from ledger.encoding import Address
from ledger.hashing import sha256


class AccountKind(StrEnum):
    """What an account is for. Only wallets have inline balances; the rest are rolled up."""

    WALLET = "wallet"
    SUPPLIER = "supplier"
    FEE = "fee"
    TREASURY = "treasury"
    WITHDRAW_CLEARING = "withdraw_clearing"
    DEPOSIT_CLEARING = "deposit_clearing"
    SUSPENSE = "suspense"
    EXIT_CLEARING = "exit_clearing"
    PAYOUT_CLEARING = "payout_clearing"
    RECEIVABLE = "receivable"


HOUSE = "offpeak"
"""The owner of every account that is ours."""


def account_id(kind: AccountKind, owner: str, asset: str) -> UUID:
    """Return the id of an account: the first 16 bytes of a SHA-256, so nobody looks it up.

    The database computes the same in `offpeak._account_id`.
    """
    return UUID(bytes=sha256(f"{kind}|{owner}|{asset}".encode())[:16])


def wallet_account(payer: Address, asset: str) -> UUID:
    """Return the id of a wallet's account in `asset`."""
    return account_id(AccountKind.WALLET, payer, asset)
