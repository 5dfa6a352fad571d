"""Exit codes: the one table that the commands use and that help and reference show."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    SETTINGS = 3
    UNREACHABLE = 4
    REFUSED = 5
    FUNDS = 6
    TRY_LATER = 7
    JOB_FAILED = 8
    NOT_SIGNED = 9
    CHECK_FAILED = 10
    WALLET = 11
    UNFINISHED = 12
    INCOMPLETE = 13
    INTERRUPTED = 130


MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.OK: "done",
    Exit.FAILED: "failed for a reason that has no code of its own",
    Exit.USAGE: "wrong usage: an option, an argument or an input that cannot be read",
    Exit.SETTINGS: "settings are missing, malformed, or not allowed in this environment",
    Exit.UNREACHABLE: "the gateway, the database, a node or another service does not answer",
    Exit.REFUSED: "refused by the gateway, the books or a contract; nothing was charged",
    Exit.FUNDS: "the wallet's funds (or its coins for gas) do not cover it",
    Exit.TRY_LATER: "no slot, no fresh price, or a full queue; the same may work in a moment",
    Exit.JOB_FAILED: "the job ended without a result; nothing was charged",
    Exit.NOT_SIGNED: "nothing was signed: declined, above --max, or the quote is not as asked",
    Exit.CHECK_FAILED: "a check found a contradiction: a record, the ledger, the log or the chain",
    Exit.WALLET: "the keystore or its password is wrong or missing",
    Exit.UNFINISHED: "the job or transaction goes on; its id was printed",
    Exit.INCOMPLETE: "charged, but cut off or not the JSON that --schema asked for; printed as is",
    Exit.INTERRUPTED: "stopped by Ctrl-C; what was sent goes on: `job list`, `wallet balance`",
}
"""What each exit code means."""

BY_CODE: Final[Mapping[str, Exit]] = {
    "gateway-unreachable": Exit.UNREACHABLE,
    "database-unreachable": Exit.UNREACHABLE,
    "not-up": Exit.UNREACHABLE,
    "answer-malformed": Exit.UNREACHABLE,
    "insufficient-funds": Exit.FUNDS,
    "funds-on-hold": Exit.FUNDS,
    "wallet-owes": Exit.FUNDS,
    "key-still-sends": Exit.REFUSED,
    "exit-open": Exit.REFUSED,
    "no-capacity": Exit.TRY_LATER,
    "no-slot": Exit.TRY_LATER,
    "price-stale": Exit.TRY_LATER,
    "busy": Exit.TRY_LATER,
    "database-unavailable": Exit.TRY_LATER,
    "database-conflict": Exit.TRY_LATER,
    "rpc-unavailable": Exit.TRY_LATER,
    "signature-not-checkable": Exit.TRY_LATER,
    "too-many-signature-checks": Exit.TRY_LATER,
    "final-block-unknown": Exit.TRY_LATER,
    "chain-moved": Exit.TRY_LATER,
    "endpoints-disagree": Exit.TRY_LATER,
    "withdrawal-fee-unknown": Exit.TRY_LATER,
    "withdrawals-halted": Exit.TRY_LATER,
    "too-many-withdrawals": Exit.TRY_LATER,
    "withdrawal-too-small": Exit.REFUSED,
    "withdrawal-fee-too-low": Exit.NOT_SIGNED,
    "withdrawal-not-found": Exit.REFUSED,
    "withdrawal-nonce-used": Exit.REFUSED,
    "chain-not-configured": Exit.SETTINGS,
    "payout-refused": Exit.REFUSED,
    "chain-key-refused": Exit.SETTINGS,
    "transaction-pending": Exit.UNFINISHED,
    "chain-id-differs": Exit.SETTINGS,
    "contract-missing": Exit.SETTINGS,
    "token-domain-differs": Exit.SETTINGS,
    "token-scale-differs": Exit.SETTINGS,
    "treasury-token-differs": Exit.SETTINGS,
    "treasury-domain-differs": Exit.SETTINGS,
    "exit-delay-too-short": Exit.SETTINGS,
    "accepts-halted": Exit.TRY_LATER,
    "too-many-open-jobs": Exit.TRY_LATER,
    "job-failed": Exit.JOB_FAILED,
    "job-unfinished": Exit.UNFINISHED,
    "answer-incomplete": Exit.INCOMPLETE,
    "interrupted": Exit.INTERRUPTED,
    "wrong-chain": Exit.NOT_SIGNED,
    "wrong-domain": Exit.NOT_SIGNED,
    "quote-differs": Exit.NOT_SIGNED,
    "quote-forged": Exit.NOT_SIGNED,
    "quote-expired": Exit.NOT_SIGNED,
    "maximum-exceeded": Exit.NOT_SIGNED,
    "declined": Exit.NOT_SIGNED,
    "record-refused": Exit.CHECK_FAILED,
    "ledger-mismatch": Exit.CHECK_FAILED,
    "treasury-mismatch": Exit.CHECK_FAILED,
    "log-mismatch": Exit.CHECK_FAILED,
    "log-damaged": Exit.CHECK_FAILED,
    "checkpoint-key-retired": Exit.SETTINGS,
    "rotation-refused": Exit.REFUSED,
    "focus-refused": Exit.CHECK_FAILED,
    "still-waiting": Exit.UNFINISHED,
    "transaction-refused": Exit.REFUSED,
    "contract-refused": Exit.REFUSED,
    "nothing-to-exit": Exit.REFUSED,
    "no-exit": Exit.REFUSED,
    "withdrawal-failed": Exit.REFUSED,
    "exit-not-ripe": Exit.TRY_LATER,
    "tokens-missing": Exit.FUNDS,
    "gas-missing": Exit.FUNDS,
    "fee-above": Exit.NOT_SIGNED,
    "terms-differ": Exit.NOT_SIGNED,
    "wrong-contract": Exit.NOT_SIGNED,
    "way-missing": Exit.USAGE,
    "no-node": Exit.USAGE,
    "transfer-unknown": Exit.USAGE,
    "no-keystore": Exit.WALLET,
    "keystore-unreadable": Exit.WALLET,
    "keystore-exists": Exit.WALLET,
    "wrong-password": Exit.WALLET,
    "no-password": Exit.WALLET,
    "missing-key": Exit.SETTINGS,
    "bad-settings": Exit.SETTINGS,
    "not-owner": Exit.SETTINGS,
    "development-only": Exit.SETTINGS,
    "interval-open": Exit.TRY_LATER,
    "records-pending": Exit.TRY_LATER,
    "export-busy": Exit.TRY_LATER,
    "export-contradicts": Exit.CHECK_FAILED,
    "library-missing": Exit.SETTINGS,
    "too-many-rows": Exit.USAGE,
    "export-exists": Exit.USAGE,
    "bad-month": Exit.USAGE,
    "bad-interval": Exit.USAGE,
    "unmatched": Exit.CHECK_FAILED,
    "unknown-account": Exit.REFUSED,
    "unknown-record": Exit.REFUSED,
    "corrected-already": Exit.REFUSED,
    "charge-not-less": Exit.REFUSED,
    "correction-conflict": Exit.REFUSED,
    "period-not-over": Exit.REFUSED,
    "period-not-soft-closed": Exit.REFUSED,
    "period-closed": Exit.REFUSED,
    "later-period-closed": Exit.REFUSED,
    "earlier-period-open": Exit.REFUSED,
    "records-unsealed": Exit.TRY_LATER,
    "transfers-in-flight": Exit.TRY_LATER,
    "bad-amount": Exit.USAGE,
    "bad-address": Exit.USAGE,
    "bad-input": Exit.USAGE,
    "bad-schema": Exit.USAGE,
    "malformed-id": Exit.USAGE,
}
"""Which exit code a failure's own code leads to."""


def table() -> str:
    """Return the exit codes as lines of text."""
    return "\n".join(f"{int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())
