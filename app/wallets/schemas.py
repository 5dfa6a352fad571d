"""Wallets on the wire."""

from typing import Annotated

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


class BalanceOut(BaseModel):
    """One wallet's prepaid money; the three buckets never overlap."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    payer: AddressText
    asset: AddressText
    available: Amount = Field(description="Free to be held for new requests.")
    held: Amount = Field(description="Set aside for requests that have not ended.")
    pending: Amount = Field(description="Deposited, not yet confirmed.")
    as_of: str = Field(description="Database time of this view, RFC 3339, UTC.")
