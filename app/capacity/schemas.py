"""The market on the wire."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.wallets.schemas import Amount

Fraction = Annotated[
    str, Field(pattern=r"^[01]\.[0-9]{6}$", description="0 to 1 with six decimals.")
]


class Out(BaseModel):
    """A response object."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RatesNow(Out):
    """Prices in settlement tokens, per million tokens of text and per request."""

    input_per_mtok: Amount
    output_per_mtok: Amount
    per_request: Amount


class ModelRegion(Out):
    """One region in which a release is or was lately served."""

    region: str
    available: bool = Field(description="Whether a quote could be had now.")
    rates: RatesNow | None = Field(description="None when nothing is on fresh offer.")


class ModelOut(Out):
    """An approved model release."""

    id: str
    name: str
    author: str
    licence: str
    revision: str = Field(description="SHA-256 of the weights.")
    context_tokens: int = Field(description="Prompt and answer together.")
    regions: list[ModelRegion]


class ModelList(Out):
    """All approved releases."""

    models: list[ModelOut]


class PricePointOut(Out):
    """The stored second that prices follow from."""

    at: str
    load: Fraction
    floor: RatesNow
    curve_version: int


class CapacityOut(Out):
    """Slots of one release in one region."""

    model: str
    region: str
    deployments: int
    offered: int
    occupied: int
    load: Fraction | None = Field(description="60-second smoothed; null without a price point.")
    price_point: PricePointOut | None
    gpu_activity: Fraction | None = Field(description="Telemetry only. It never sets a price.")


class CapacityList(Out):
    """The market as last read."""

    as_of: str
    capacity: list[CapacityOut]
