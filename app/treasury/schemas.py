"""Withdrawals and the treasury's terms on the wire, shared with the client."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.wallets.schemas import AddressText, Amount

Decimal = Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,77})$")]
Word = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{64}$")]
SignatureText = Annotated[
    str, Field(pattern="^0x([0-9a-fA-F]{2})*$", max_length=8_192, description="0x and hex digits.")
]
WithdrawalId = Annotated[str, Field(pattern="^wdr_[0-9a-f-]{36}$")]


class Wire(BaseModel):
    """A frozen wire form that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WithdrawalMessage(Wire):
    """The Withdrawal that the wallet signed (EIP-712); amounts are base units of the token."""

    payer: AddressText
    token: AddressText
    amount: Decimal
    maxFee: Decimal  # noqa: N815 -- EIP-712 names
    nonce: Word
    deadline: Decimal


class WithdrawalIn(Wire):
    """Take prepaid funds back; the recipient is always the payer."""

    withdrawal: WithdrawalMessage
    signature: SignatureText


class SuspenseClaimMessage(Wire):
    """The SuspenseClaim that the sender of the tokens signed (EIP-712)."""

    payer: AddressText
    transaction: Word
    logIndex: Decimal  # noqa: N815 -- EIP-712 names
    nonce: Word
    deadline: Decimal


class SuspenseClaimIn(Wire):
    """Have tokens credited that came by a plain transfer; the beneficiary is who sent them."""

    claim: SuspenseClaimMessage
    signature: SignatureText


class SuspenseOut(Wire):
    """Tokens that came by a plain transfer instead of a deposit."""

    id: str = Field(description="As `transfers` of the balance names it.")
    payer: AddressText = Field(description="Who sent them, and alone can claim them.")
    amount: Amount
    transaction: Word
    log_index: int = Field(description="Of the token's Transfer log in its block.")
    block: int
    state: Literal["not-final", "unclaimed", "requested", "credited"]
    next_action: str = Field(description="What happens next, or what the wallet can do.")


class SuspenseListOut(Wire):
    """The 100 oldest of a wallet's plain transfers that are not credited."""

    transfers: list[SuspenseOut]


class RelayOut(Wire):
    """One transaction that pays, or tried to pay, a withdrawal."""

    state: Literal["queued", "signed", "mined", "done", "reverted", "cancelled", "abandoned"]
    hash: Word | None = Field(description="The latest signed form's, or the mined one's.")
    block: int | None = Field(description="Where it was mined, null before that.")
    confirmations: int | None = Field(
        description="Blocks from that one to the latest, both counted; null while nobody knows."
    )
    reason: str | None = Field(description="Why it does not move, or why it reverted.")


class WithdrawalOut(Wire):
    """One withdrawal; `amount` leaves the balance, `amount` less `fee` reaches the wallet."""

    id: WithdrawalId
    state: Literal["pending", "paid", "failed"]
    payer: AddressText
    amount: Amount
    fee: Amount
    digest: Word = Field(description="The signed message's digest: the contract's id of it.")
    deadline: str = Field(description="After it nothing is paid; RFC 3339, UTC.")
    requested_at: str
    ended_at: str | None
    reason: str | None = Field(description="Of a failed one: why, and the block that proves it.")
    next_action: str = Field(description="What happens next, or what the wallet can do.")
    transactions: list[RelayOut] = Field(description="Oldest first, at most the last ten.")


class WithdrawalPageOut(Wire):
    """A wallet's withdrawals, newest first; `next` is null on the last page."""

    withdrawals: list[WithdrawalOut]
    next: WithdrawalId | None = Field(description="`before` of the next page.")


class TreasuryOut(Wire):
    """Where money goes in and out, and on which terms."""

    chain_id: int
    treasury: AddressText = Field(
        description="Holds deposits; verifyingContract of what is signed."
    )
    receipt_anchor: AddressText
    token: AddressText
    has_chain: bool = Field(description="False: this gateway takes no deposits or withdrawals.")
    exit_delay_seconds: int | None = Field(
        description="How long a wallet's own exit takes without us; null while nobody shows it."
    )
    deposit_safe_limit: Amount = Field(
        description="Deposits up to this together count once their block is `safe`; more once"
        " it is `finalized`."
    )
    withdrawal_minimum: Amount
    withdrawal_fee: Amount | None = Field(
        description="The fee now; sign a maxFee of at least this. Null while nobody knows it."
    )
    withdrawal_fee_base_units: Decimal | None = Field(description="The same in base units.")
