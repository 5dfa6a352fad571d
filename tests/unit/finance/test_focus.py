"""A row of focus.csv is checked cell by cell, and for what cells say together."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.finance.export.as_focus import focus_row
from app.finance.export.focus_rules import COLUMNS, FocusRefused, check_row
from app.finance.export.rows import RecordRow
from ledger.encoding import parse_address
from ledger.money import Nano
from ledger.usage import NO_RECORD, Outcome, UsageRecord

CHAIN = 8_453
NOVEMBER = 1_793_491_200
"""2026-11-01T00:00:00Z"""
MANDATORY = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost",
    "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory",
    "ServiceName",
)  # fmt: skip
"""The columns whose feature level is Mandatory in FOCUS 1.2."""


def word(number: int) -> bytes:
    return number.to_bytes(32)


def record() -> UsageRecord:
    return UsageRecord(
        version=1,
        record_id=word(7),
        quote_digest=word(1),
        accept_digest=word(2),
        supplier_statement=word(3),
        payer=parse_address("0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0"),
        payer_seq=1,
        prev_payer_record=NO_RECORD,
        model_revision=word(4),
        input_tokens=48,
        cached_input_tokens=0,
        output_tokens=10,
        reasoning_tokens=0,
        input_rate_nano=Nano(60_000_000),
        output_rate_nano=Nano(180_000_000),
        per_request_nano=Nano(1_000),
        asset=parse_address("0xe7f1725e7734ce288f8367e1bb143e90bb3f0512"),
        held_nano=Nano(10_000),
        charge_nano=Nano(5_680),
        released_nano=Nano(4_320),
        outcome=Outcome.COMPLETED,
        corrects_record=NO_RECORD,
        request_commit=word(5),
        response_commit=word(6),
        completed_at=NOVEMBER + 60,
        include_by=NOVEMBER + 86_460,
        salt=word(8),
    )


def row(made: UsageRecord | None = None, *, corrected_at: int | None = None) -> dict[str, str]:
    made = record() if made is None else made
    return focus_row(
        RecordRow(
            record=made,
            signature=bytes(65),
            place=3,
            booked_at=made.completed_at,
            model="smollm2-135m-instruct",
            region="eu-1",
            corrected_at=corrected_at,
        ),
        CHAIN,
    )


def corrected() -> UsageRecord:
    return replace(
        record(),
        record_id=word(9),
        outcome=Outcome.CORRECTION,
        corrects_record=word(7),
        held_nano=Nano(5_680),
        charge_nano=Nano(680),
        released_nano=Nano(5_000),
    )


def test_every_mandatory_column_is_there_and_its_own_ones_begin_with_x() -> None:
    assert set(MANDATORY) <= set(COLUMNS)
    check_row(row())


def test_a_charge_is_in_dollars_at_par_and_names_its_token() -> None:
    made = row()
    assert made["BilledCost"] == made["x_SettlementAmount"] == "0.000005680"
    assert made["BillingCurrency"] == "USD"
    assert made["x_SettlementAsset"] == "eip155:8453:0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
    assert (made["ConsumedQuantity"], made["ConsumedUnit"]) == ("58", "Tokens")
    assert made["BillingPeriodStart"] == "2026-11-01T00:00:00Z"
    assert made["BillingPeriodEnd"] == "2026-12-01T00:00:00Z"


def test_a_correction_of_an_earlier_month_is_a_correction_with_a_negative_cost() -> None:
    made = row(corrected(), corrected_at=NOVEMBER - 1)
    check_row(made)
    assert (made["ChargeClass"], made["BilledCost"]) == ("Correction", "-0.000005000")


def test_a_correction_within_its_month_has_no_charge_class_as_focus_wants_it() -> None:
    made = row(corrected(), corrected_at=NOVEMBER)
    check_row(made)
    assert (made["ChargeClass"], made["x_Outcome"]) == ("", "correction")


WRONG: dict[str, tuple[str, ...]] = {
    "BilledCost": ("", "1,5", "1e-9", "+1", "0x1", ".5", "0.000005681", "-0.000005680", "NaN"),
    "BillingAccountId": (
        "",
        "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0",
        "eip155:0:0x",
        "eip155:8453:0x9FE46736679d2D9a65F0992F2272dE9f3c7fa6e0",
        "eip155:8453:0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0",
    ),
    "BillingAccountName": ("", " a", "a\n"),
    "BillingCurrency": ("", "USDC", "usd", "EUR"),
    "BillingPeriodEnd": ("", "2026-12-01", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00+00:00"),
    "BillingPeriodStart": ("", "2026-12-01T00:00:00Z", "2026-13-01T00:00:00Z"),
    "ChargeCategory": ("", "usage", "Tax", "Refund"),
    "ChargeClass": ("correction", "Correction", "Refund"),
    "ChargeDescription": ("", "\x1b[31m"),
    "ChargeFrequency": ("", "Daily"),
    "ChargePeriodEnd": ("", "2026-11-01T00:01:00Z"),
    "ChargePeriodStart": ("", "2026-11-01T00:01:01Z", "2026-11-01 00:01:00"),
    "ConsumedQuantity": ("", "-1", "58 tokens"),
    "ConsumedUnit": ("", "Token"),
    "ContractedCost": ("", "0.000005681"),
    "ContractedUnitPrice": ("", "-1", "0.000005681"),
    "EffectiveCost": ("", "0"),
    "InvoiceIssuerName": ("",),
    "ListCost": ("", "1"),
    "ListUnitPrice": ("", "0.000005681"),
    "PricingCategory": ("", "Spot", "dynamic"),
    "PricingCurrency": ("", "USDC", "t0123456789ABCDEF0123"),
    "PricingCurrencyContractedUnitPrice": ("-1", "one"),
    "PricingCurrencyEffectiveCost": ("", "2"),
    "PricingCurrencyListUnitPrice": ("-1",),
    "PricingQuantity": ("", "2", "0", "x"),
    "PricingUnit": ("", "Request"),
    "ProviderName": ("",),
    "PublisherName": ("",),
    "RegionId": ("", " eu"),
    "RegionName": ("", "\teu"),
    "ResourceId": (" x",),
    "ServiceCategory": ("", "AI", "Compute"),
    "ServiceName": ("",),
    "ServiceSubcategory": ("", "Virtual Machines", "generative AI"),
    "SkuId": ("", "0x12"),
    "SkuPriceId": ("", "12"),
    "x_CorrectsRecord": ("00000000-0000-0000-0000-000000000007",),
    "x_InputTokens": ("", "-1"),
    "x_ModelRevision": ("", "0x"),
    "x_OutputTokens": ("", "ten"),
    "x_Outcome": ("", "ok", "correction"),
    "x_Place": ("", "-1"),
    "x_SettlementAmount": ("", "0.000005681"),
    "x_SettlementAsset": ("", "USDC", "eip155:8453:0x0"),
}


def test_every_column_has_wrong_cells_to_be_refused() -> None:
    assert set(WRONG) == set(COLUMNS)


@pytest.mark.parametrize(
    ("column", "cell"), [(column, cell) for column, cells in WRONG.items() for cell in cells]
)
def test_a_wrong_cell_is_refused(column: str, cell: str) -> None:
    with pytest.raises(FocusRefused):
        check_row(row() | {column: cell})


@pytest.mark.parametrize(
    "change",
    [
        lambda made: {name: made[name] for name in reversed(made)},
        lambda made: {name: made[name] for name in made if name != "SkuId"},
        lambda made: made | {"Tags": ""},
    ],
)
def test_another_set_or_order_of_columns_is_refused(
    change: Callable[[dict[str, str]], dict[str, str]],
) -> None:
    with pytest.raises(FocusRefused, match="columns"):
        check_row(change(row()))
