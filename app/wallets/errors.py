"""Errors from wallet signatures and read access.

* WalletError
  - WrongSigner, NotConfirmed, ContractWalletUnsupported
  - SignatureNotCheckable, TooManySignatureChecks
  - ReadAccessMissing, ReadAccessMalformed, ReadAccessExpired, ReadAccessTooLong, WrongScope
  - ExitOpen, WalletOwes, FundingRefused
"""

from datetime import datetime
from typing import ClassVar

from ledger.encoding import Address, checksum_address


class WalletError(Exception):
    """Base of every expected wallet failure."""

    code: ClassVar[str]


class WrongSigner(WalletError):
    """The signature is not the named wallet's over exactly this message."""

    code = "bad-signature"

    def __init__(self, *, expected: Address, recovered: Address) -> None:
        super().__init__(
            f"signed by {checksum_address(recovered)}, not by {checksum_address(expected)}, "
            "or over other typed data; no contract of that address confirms it either"
        )
        self.expected = checksum_address(expected)
        self.recovered = checksum_address(recovered)


class NotConfirmed(WalletError):
    """Neither a key of the named wallet nor its contract confirms this signature."""

    code = "bad-signature"

    def __init__(self, *, signer: Address) -> None:
        super().__init__(
            f"the contract at {checksum_address(signer)} does not confirm it (ERC-1271), and no"
            " factory call in it deploys one that does (ERC-6492)"
        )
        self.expected = checksum_address(signer)


class SignatureNotCheckable(WalletError):
    """Whether this wallet's contract confirms the signature cannot be found out right now."""

    code = "signature-not-checkable"
    retry_after_seconds = 2

    def __init__(self) -> None:
        super().__init__(
            "the chain gave no answer that counts; nothing was taken or charged, send it again"
        )


class TooManySignatureChecks(WalletError):
    """This contract wallet's signatures were checked on chain too often just now."""

    code = "too-many-signature-checks"

    def __init__(self, *, retry_after_seconds: int) -> None:
        super().__init__(f"try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class ContractWalletUnsupported(WalletError):
    """This gateway has no chain to ask whether a contract wallet signed (ERC-1271, ERC-6492)."""

    code = "contract-wallet-unsupported"

    def __init__(self, *, signature_bytes: int) -> None:
        super().__init__(
            f"a signature of {signature_bytes} bytes is a contract wallet's; "
            "sign with a plain wallet (65 bytes)"
        )
        self.signature_bytes = signature_bytes


class ReadAccessMissing(WalletError):
    """This needs a wallet-signed read access in the Authorization header."""

    code = "read-access-missing"

    def __init__(self) -> None:
        super().__init__("send Authorization: OffpeakRead <base64url of access and signature>")


class ReadAccessMalformed(WalletError):
    """The Authorization header does not hold a well-formed read access."""

    code = "read-access-malformed"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ReadAccessExpired(WalletError):
    """The read access is no longer valid; sign a new one."""

    code = "read-access-expired"

    def __init__(self, *, valid_until: int, now: datetime) -> None:
        super().__init__(f"valid until {valid_until}, now {int(now.timestamp())} (unix seconds)")
        self.valid_until = valid_until


class ReadAccessTooLong(WalletError):
    """The read access is valid for longer than a stolen one should be."""

    code = "read-access-too-long"

    def __init__(self, *, limit_seconds: int) -> None:
        super().__init__(f"validUntil may be at most {limit_seconds} s ahead")
        self.limit_seconds = limit_seconds


class WrongScope(WalletError):
    """The read access was signed for something else."""

    code = "wrong-scope"

    def __init__(self, *, needed: str) -> None:
        super().__init__(f"scope must be {needed!r}")
        self.needed = needed


class ExitOpen(WalletError):
    """This wallet asked the contract for its money: finalize or cancel the exit first."""

    code = "exit-open"

    def __init__(self) -> None:
        super().__init__(
            "an exit is open on chain, so nothing new is accepted until it is final that it was"
            " finalized or cancelled, or until it lapses"
        )


class WalletOwes(WalletError):
    """Money that was credited here is gone from the chain: a deposit covers it."""

    code = "wallet-owes"

    def __init__(self) -> None:
        super().__init__(
            "the chain took back money that was spent here; nothing new is accepted until a"
            " deposit covers what GET /v1/balances shows as owed"
        )


class FundingRefused(WalletError):
    """Made-up money exists in development only."""

    code = "funding-refused"
