"""Expected failures of money between chain and ledger.

* TreasuryError
  - FinalBlockUnknown, WrongSender                     the sender stops, and tries again
  - KeyStillSends
  - ChainMoved, EndpointsDisagree                      the watcher's round is given up
  - WithdrawalTooSmall, WithdrawalFeeTooLow, WithdrawalDeadline, WithdrawalToken
  - WithdrawalNonceUsed, TooManyWithdrawals, WithdrawalsHalted, WithdrawalNotFound
  - TransferNotFound, TransferNotYours, TransferNotFinal, TransferClaimed
  - ClaimDeadline, ClaimTooSmall
  - ChainNotConfigured, FeeUnknown, PayoutRefused
"""

from typing import ClassVar

from ledger.encoding import Address, checksum_address
from ledger.money import Nano, format_amount


class TreasuryError(Exception):
    """Base of every expected failure of this package."""

    code: ClassVar[str]


class FinalBlockUnknown(TreasuryError):
    """No endpoint knows a finalized block, so nothing can be ended."""

    code = "final-block-unknown"


class ChainMoved(TreasuryError):
    """Blocks were replaced while they were read, or the endpoint lags; they are read again."""

    code = "chain-moved"

    def __init__(self, *, number: int) -> None:
        super().__init__(f"block {number} changed while it was read, or is not shown")
        self.number = number


class EndpointsDisagree(TreasuryError):
    """Two endpoints show different blocks at a depth that counts: nothing is booked by either."""

    code = "endpoints-disagree"

    def __init__(self, *, number: int) -> None:
        super().__init__(f"endpoints of OFFPEAK_RPC_URLS show different blocks {number}")
        self.number = number


class WrongSender(TreasuryError):
    """Transactions wait for another key than the one that is configured."""

    code = "wrong-sender"

    def __init__(self, *, count: int, sender: Address) -> None:
        super().__init__(
            f"{count} open transactions belong to another key than {checksum_address(sender)};"
            " configure that key until they are final, or `offpeak treasury abandon`"
        )
        self.count = count
        self.sender = sender


class KeyStillSends(TreasuryError):
    """Transactions of a key that sends cannot be given up: those behind them would hang."""

    code = "key-still-sends"
    next_step = "give the workers another key first: docs/how-to/rotate-chain-keys.md"

    def __init__(self, sender: Address) -> None:
        super().__init__(f"{checksum_address(sender)} is a key that the workers send with")
        self.sender = sender


class ChainNotConfigured(TreasuryError):
    """This gateway has no chain to pay withdrawals on."""

    code = "chain-not-configured"


class FeeUnknown(TreasuryError):
    """What a withdrawal costs cannot be told now, since no node answers; nothing was taken."""

    code = "withdrawal-fee-unknown"
    retry_after_seconds = 5


class WithdrawalTooSmall(TreasuryError):
    """The amount is below the least that is paid out, or not above the fee."""

    code = "withdrawal-too-small"

    def __init__(self, *, minimum: Nano) -> None:
        super().__init__(f"at least {format_amount(minimum)} can be withdrawn")
        self.minimum = format_amount(minimum)


class WithdrawalFeeTooLow(TreasuryError):
    """The fee is now higher than the signed maxFee; sign again with at least this one."""

    code = "withdrawal-fee-too-low"

    def __init__(self, *, fee: int, max_fee: int) -> None:
        super().__init__(f"the fee is {fee} base units now, the signed maxFee {max_fee}")
        self.fee_base_units = str(fee)
        self.max_fee_base_units = str(max_fee)


class WithdrawalDeadline(TreasuryError):
    """The deadline is too near to be met, or too far ahead."""

    code = "withdrawal-deadline"

    def __init__(self, *, deadline: int, least: int, most: int) -> None:
        super().__init__(f"the deadline must be within {least} .. {most} (unix seconds)")
        self.deadline = deadline
        self.least = least
        self.most = most


class WithdrawalToken(TreasuryError):
    """The message names another token than the one that this treasury holds."""

    code = "withdrawal-token"

    def __init__(self, *, token: Address) -> None:
        super().__init__(f"the token is {checksum_address(token)}")
        self.token = checksum_address(token)


class WithdrawalNonceUsed(TreasuryError):
    """Another withdrawal of this wallet was signed with this nonce."""

    code = "withdrawal-nonce-used"

    def __init__(self) -> None:
        super().__init__("sign a new message with a new random nonce")


class TooManyWithdrawals(TreasuryError):
    """Too many withdrawals of this wallet are on their way; wait for one to end."""

    code = "too-many-withdrawals"
    retry_after_seconds = 60


class WithdrawalsHalted(TreasuryError):
    """Nothing is paid out until an operator has looked at the books; nothing was taken."""

    code = "withdrawals-halted"
    retry_after_seconds = 60


class WithdrawalNotFound(TreasuryError):
    """There is no withdrawal of this wallet with this id."""

    code = "withdrawal-not-found"


class PayoutRefused(TreasuryError):
    """The books do not let this payout be set aside; nothing was done."""

    code = "payout-refused"

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason.replace("_", " "))
        self.reason = reason


class TransferNotFound(TreasuryError):
    """No plain transfer to the treasury is known at this place; nodes may be behind."""

    code = "transfer-not-found"

    def __init__(self) -> None:
        super().__init__("no plain transfer is known by this transaction and log index yet")


class TransferNotYours(TreasuryError):
    """Only the address that sent the tokens can claim them, for itself."""

    code = "transfer-not-yours"

    def __init__(self) -> None:
        super().__init__("another address sent these tokens; only it can claim them")


class TransferNotFinal(TreasuryError):
    """The transfer's block is not final yet; the same claim can be sent again then."""

    code = "transfer-not-final"
    retry_after_seconds = 60

    def __init__(self) -> None:
        super().__init__("its block is not final yet; send the same claim again when it is")


class TransferClaimed(TreasuryError):
    """Another message has claimed this transfer: it is credited once."""

    code = "transfer-claimed"

    def __init__(self) -> None:
        super().__init__("it was claimed before and is credited once")


class ClaimDeadline(TreasuryError):
    """The claim's deadline has passed, or is too far ahead."""

    code = "claim-deadline"

    def __init__(self, *, deadline: int, least: int, most: int) -> None:
        super().__init__(f"the deadline must be within {least} .. {most} (unix seconds)")
        self.deadline = deadline
        self.least = least
        self.most = most


class ClaimTooSmall(TreasuryError):
    """Crediting so little would cost more gas than it is worth."""

    code = "claim-too-small"

    def __init__(self, *, minimum: Nano) -> None:
        super().__init__(f"at least {format_amount(minimum)} can be claimed")
        self.minimum = format_amount(minimum)
