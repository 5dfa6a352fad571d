"""The signed offer: what a request would cost at most, fixed before anything is reserved."""

from dataclasses import dataclass
from typing import ClassVar

from ledger.encoding import Address
from ledger.money import Nano
from ledger.typed_data import StructType, TypedMessage


@dataclass(frozen=True, slots=True)
class Quote(TypedMessage):
    """A quote as the gateway's quote key signs it, under the domain of authorizations.

    Rates are nano per 10^6 tokens, `ask_nano` is the dearest supplier ask that they cover (nano
    per slot-second), `load_ppm` is the load in millionths, `price_point_at`, `issued_at` and
    `expires_at` are unix seconds; expiry limits accepting only. `quote_id` is the quote's UUID
    by `ledger.encoding.uuid_bytes32`.
    """

    TYPE: ClassVar[StructType] = StructType(
        "Quote(bytes32 quoteId,address payer,string model,bytes32 modelRevision,string region,"
        "bytes32 requestDigest,uint32 inputTokens,uint32 maxOutputTokens,uint128 inputRateNano,"
        "uint128 outputRateNano,uint128 perRequestNano,address token,uint256 maxChargeNano,"
        "uint128 askNano,uint32 loadPpm,uint64 pricePointAt,uint32 curveVersion,"
        "uint32 runSeconds,uint64 issuedAt,uint64 expiresAt)"
    )

    quote_id: bytes
    payer: Address
    model: str
    model_revision: bytes
    region: str
    request_digest: bytes
    input_tokens: int
    max_output_tokens: int
    input_rate_nano: Nano
    output_rate_nano: Nano
    per_request_nano: Nano
    token: Address
    max_charge_nano: Nano
    ask_nano: Nano
    load_ppm: int
    price_point_at: int
    curve_version: int
    run_seconds: int
    issued_at: int
    expires_at: int
