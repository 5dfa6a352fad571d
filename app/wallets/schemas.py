"""Wallets on the wire."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Amount = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{1,10}\.[0-9]{9}$",
        description="Decimal number of settlement tokens.",
        examples=["0.000014250"],
    ),
]
AddressText = Annotated[
    str, Field(pattern="^0x[0-9a-fA-F]{40}$", description="EIP-55 or lower case.")
]
HashText = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$", description="Transaction hash.")]
NextStep = Annotated[str, Field(description="What to do about it, in words.")]


class _Out(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PendingDepositOut(_Out):
    """A deposit that is not credited yet."""

    amount: Amount
    transaction: HashText
    block: int
    waits_for: Literal["safe", "finalized"] = Field(
        description="The depth at which it is credited."
    )
    blocks_left: int | None = Field(
        description="Blocks until that depth; null while no node says how far the chain is."
    )
    next_step: NextStep


class PendingWithdrawalOut(_Out):
    """A withdrawal that is not paid yet."""

    id: str = Field(description="`wdr_` and a UUID: GET /v1/withdrawals/{id}.")
    amount: Amount
    fee: Amount = Field(description="Part of `amount` that pays for the transaction.")
    deadline: str = Field(description="RFC 3339, UTC. Not paid by then, the money comes back.")
    transaction: HashText | None
    block: int | None = Field(description="Where it was mined.")
    blocks_left: int | None = Field(description="Blocks until it is final.")
    next_step: NextStep


class ExitOut(_Out):
    """An exit that the wallet has asked the contract for."""

    wanted: Amount = Field(description="What the contract was asked for.")
    set_aside: Amount = Field(description="What we have set aside for it.")
    ready_at: str = Field(description="From when on it may be finalized, RFC 3339, UTC.")
    until: str = Field(description="When it lapses, RFC 3339, UTC.")
    next_step: NextStep


class UnaccountedOut(_Out):
    """Tokens that came by a plain transfer instead of a deposit."""

    id: str = Field(description="What a claim names.")
    amount: Amount
    transaction: HashText
    block: int
    final: bool
    claimed: bool
    next_step: NextStep


class BalanceOut(_Out):
    """One wallet's prepaid money; the buckets never overlap.

    Lists hold the 50 oldest items, amounts hold all.
    """

    payer: AddressText
    asset: AddressText
    available: Amount = Field(description="Free to be held for new requests.")
    held: Amount = Field(description="Set aside for requests that have not ended.")
    pending: Amount = Field(description="Deposited, not yet deep enough in the chain.")
    withdrawing: Amount = Field(description="On its way back to the wallet.")
    exiting: Amount = Field(description="Set aside for an exit without us.")
    unaccounted: Amount = Field(description="Sent by plain transfer; can be claimed.")
    owed: Amount = Field(
        description="Taken back by the chain after it was spent; above 0 the wallet is frozen."
    )
    deposits: list[PendingDepositOut]
    withdrawals: list[PendingWithdrawalOut]
    exit: ExitOut | None
    transfers: list[UnaccountedOut]
    next_steps: dict[str, str] = Field(
        description="What to do about each bucket that is not empty, in words."
    )
    as_of: str = Field(description="Database time of this view, RFC 3339, UTC.")
