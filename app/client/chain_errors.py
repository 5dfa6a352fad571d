"""Errors from a wallet's own dealings with the chain: what happened, and the next step.

* ClientError
  - WrongContract                             the address is another contract
  - TokensMissing, GasMissing                 the wallet has too little
  - WayMissing                                the token does not have that way
  - ContractRefused                           the contract said no
  - NothingToExit, ExitMissing, ExitNotRipe
  - NoNode                                    no node was named
  - TermsDiffer, FeeAbove, WithdrawalEnded    withdrawals
  - TransferUnknown                           claims
  - StillWaiting                              it goes on without us
"""

from collections.abc import Mapping
from typing import Final

from app.client.errors import ClientError
from app.client.units import coin_text, token_text
from ledger.encoding import Address, checksum_address
from ledger.money import Nano, format_amount

REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "EnforcedPause": (
        "the treasury is paused: only exits work",
        "wait until the operator lifts the pause, or `offpeak exit request`",
    ),
    "AccessControlUnauthorizedAccount": (
        "this key does not have the role for it",
        "use the keystore of the key that has it: guardian for pause, admin for unpause",
    ),
    "ZeroAmount": ("the amount is zero", "name an amount above 0"),
    "PermitRefused": (
        "the token did not take the permit",
        "try `--authorization`, or deposit without an option",
    ),
    "ExceedsAvailable": (
        "the contract has less for this wallet than asked for",
        "`offpeak exit status` shows what it has; committed spending is taken off",
    ),
    "NoExit": ("this wallet has no open exit", "`offpeak exit request` first"),
    "ExitNotReady": ("the exit is not ripe yet", "`offpeak exit status` says when it is"),
    "ExitLapsed": ("the exit has lapsed", "`offpeak exit request` anew"),
    "AccountBlacklisted": (
        "the token's issuer has put an address on its deny list",
        "ask the issuer of the token; the money stays where it is",
    ),
    "AuthorizationUsedOrCanceled": ("this authorization was used already", "deposit again"),
    "SignatureExpired": ("the signature is too old", "try again; check this machine's clock"),
    "ERC20InsufficientBalance": ("the wallet has too few tokens", "get tokens, or deposit less"),
    "ERC20InsufficientAllowance": ("the approval is used up", "deposit again"),
}
"""What the contracts' errors mean to a wallet, and what it can do."""


class NoNode(ClientError):
    """This needs a node of the chain."""

    code = "no-node"
    next_step = "name one with --rpc URL or OFFPEAK_RPC_URL"

    def __init__(self) -> None:
        super().__init__("no JSON-RPC URL of the chain is known")


class WrongContract(ClientError):
    """An address does not hold the contract that this wallet signs for."""

    code = "wrong-contract"
    next_step = "nothing was signed; check OFFPEAK_TREASURY_ADDRESS and OFFPEAK_TOKEN_ADDRESS"

    def __init__(self, address: Address, *, reason: str) -> None:
        super().__init__(f"{checksum_address(address)} is not the expected contract: {reason}")


class TokensMissing(ClientError):
    """The wallet holds fewer tokens than it wants to deposit."""

    code = "tokens-missing"
    next_step = "nothing was signed; get tokens, or deposit less"

    def __init__(self, wallet: Address, *, need: int, have: int) -> None:
        super().__init__(
            f"{checksum_address(wallet)} holds {token_text(have)} tokens, {token_text(need)} wanted"
        )


class GasMissing(ClientError):
    """The wallet cannot pay for its transaction."""

    code = "gas-missing"

    def __init__(self, wallet: Address, *, need_wei: int, have_wei: int) -> None:
        super().__init__(
            f"{checksum_address(wallet)} holds {coin_text(have_wei)} native coins, the transaction"
            f" may cost {coin_text(need_wei)}"
        )
        self.next_step = f"send native coins to {checksum_address(wallet)}; nothing was sent"


class WayMissing(ClientError):
    """The token cannot be deposited in the way that was asked for."""

    code = "way-missing"
    next_step = "leave the option out: the best way that the token has is taken"

    def __init__(self, way: str, *, reason: str) -> None:
        super().__init__(f"the token has no {way}: {reason}")


class ContractRefused(ClientError):
    """The contract does not do this now."""

    code = "contract-refused"

    def __init__(self, what: str, *, name: str, message: str) -> None:
        reason, step = REASONS.get(name, (name or message, "see docs/spec/treasury-contract.md"))
        super().__init__(f"{what}: {reason}")
        self.name = name
        self.next_step = step


class NothingToExit(ClientError):
    """The contract has less for this wallet than it wants to take."""

    code = "nothing-to-exit"

    def __init__(self, *, wanted: int, available: int) -> None:
        super().__init__(
            f"{token_text(wanted)} wanted, the contract has {token_text(available)} for this wallet"
        )
        self.next_step = "ask for less, or leave the amount out for all of it"


class ExitMissing(ClientError):
    """There is no exit to finalize or to cancel."""

    code = "no-exit"

    def __init__(self, next_step: str) -> None:
        super().__init__("this wallet has no open exit")
        self.next_step = next_step


class ExitNotRipe(ClientError):
    """The exit cannot be finalized before its time."""

    code = "exit-not-ripe"

    def __init__(self, *, ready_at: str, now: str) -> None:
        super().__init__(f"the exit is ripe at {ready_at}; the chain has {now}")
        self.next_step = f"`offpeak exit finalize` from {ready_at} on"


class TermsDiffer(ClientError):
    """The gateway pays withdrawals from another place than the one this wallet signs for."""

    code = "terms-differ"
    next_step = "nothing was signed; do not use this gateway until this is explained"

    def __init__(self, field: str, *, expected: object, found: object) -> None:
        super().__init__(f"the gateway's {field} is {found}, this wallet signs for {expected}")


class FeeAbove(ClientError):
    """The fee of a withdrawal is above what the wallet allows, or above its amount."""

    code = "fee-above"
    next_step = "nothing was signed; raise --max-fee, withdraw more, or wait for cheaper gas"

    def __init__(self, *, fee: Nano, limit: Nano) -> None:
        super().__init__(f"the fee is {format_amount(fee)} now, the limit {format_amount(limit)}")


class WithdrawalEnded(ClientError):
    """The withdrawal was not paid; its money is available again."""

    code = "withdrawal-failed"
    next_step = "the amount is available again: sign a new withdrawal to try again"

    def __init__(self, withdrawal: str, *, reason: str) -> None:
        super().__init__(f"{withdrawal}: {reason}")


class StillWaiting(ClientError):
    """It goes on without us; its state is on the server and on the chain."""

    code = "still-waiting"

    def __init__(self, what: str, *, waited_seconds: float, look: str) -> None:
        super().__init__(f"{what} after {waited_seconds:g} s")
        self.next_step = f"it goes on without us; look later: `{look}`"


class TransferUnknown(ClientError):
    """The gateway knows no plain transfer of this wallet by this id."""

    code = "transfer-unknown"
    next_step = "see `offpeak wallet balance`: each transfer that can be claimed has its id there"

    def __init__(self, transfer: str) -> None:
        super().__init__(f"{transfer} is no transfer of this wallet that waits to be claimed")
