"""`focus.csv`: one usage charge of FOCUS 1.2 a record.

The settlement token is a US dollar token and is shown at par: BilledCost in USD is the amount in
the token, which `x_SettlementAsset` and `x_SettlementAmount` name. What is sold is one answered
request at the price that its quote fixed, so PricingQuantity is 1 and the unit price the charge.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from app.finance.export import journal
from app.finance.export.as_csv import CsvFile
from app.finance.export.focus_rules import COLUMNS, check_row
from app.finance.export.rows import RecordRow
from app.finance.export.writer import Scope, Writer
from app.finance.interval import month_interval
from app.kit.clock import unix_seconds
from ledger.encoding import uuid_from_bytes32
from ledger.export_row import caip10, harmless, net_amount, time_text
from ledger.usage import Outcome

ISSUER: Final = "OFFPEAK"
SERVICE: Final = "OFFPEAK inference"
_FREE: Final = ("RegionId", "RegionName")
"""Columns of text that somebody chose."""


class FocusWriter(Writer):
    """Writes `focus.csv`."""

    def __init__(self, scope: Scope) -> None:
        self._chain_id = scope.chain_id
        self._file = CsvFile(scope.folder / "focus.csv", COLUMNS)

    def records(self, rows: Iterable[RecordRow]) -> None:
        """Check each row and write it.

        Raises:
            FocusRefused: a row breaks a rule.
        """
        self._file.write(self._checked(row) for row in rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _checked(self, row: RecordRow) -> Iterable[str]:
        made = focus_row(row, self._chain_id)
        check_row(made)
        for name in _FREE:
            made[name] = harmless(made[name])
        return made.values()


def focus_row(row: RecordRow, chain_id: int) -> dict[str, str]:
    """Return a record's charge, by column; nothing is the empty text."""
    record = row.record
    cost = journal.amount_text(net_amount(record))
    payer, token = caip10(chain_id, record.payer), journal.commodity(record.asset)
    period = month_interval(datetime.fromtimestamp(row.booked_at, UTC).strftime("%Y-%m"))
    period_start, period_end = unix_seconds(period.start), unix_seconds(period.end)
    is_correction = record.outcome is Outcome.CORRECTION
    corrects_earlier = row.corrected_at is not None and row.corrected_at < period_start
    price = "" if is_correction else cost
    revision = "0x" + record.model_revision.hex()
    return {
        "BilledCost": cost,
        "BillingAccountId": payer,
        "BillingAccountName": payer,
        "BillingCurrency": "USD",
        "BillingPeriodEnd": time_text(period_end),
        "BillingPeriodStart": time_text(period_start),
        "ChargeCategory": "Usage",
        "ChargeClass": "Correction" if corrects_earlier else "",
        "ChargeDescription": f"{record.outcome.name.lower()} inference request",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": time_text(record.completed_at + 1),
        "ChargePeriodStart": time_text(record.completed_at),
        "ConsumedQuantity": "" if is_correction else _tokens(row),
        "ConsumedUnit": "" if is_correction else "Tokens",
        "ContractedCost": cost,
        "ContractedUnitPrice": price,
        "EffectiveCost": cost,
        "InvoiceIssuerName": ISSUER,
        "ListCost": cost,
        "ListUnitPrice": price,
        "PricingCategory": "Dynamic",
        "PricingCurrency": token,
        "PricingCurrencyContractedUnitPrice": price,
        "PricingCurrencyEffectiveCost": cost,
        "PricingCurrencyListUnitPrice": price,
        "PricingQuantity": "" if is_correction else "1",
        "PricingUnit": "" if is_correction else "Requests",
        "ProviderName": ISSUER,
        "PublisherName": ISSUER,
        "RegionId": row.region,
        "RegionName": row.region,
        "ResourceId": str(uuid_from_bytes32(record.record_id)),
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": SERVICE,
        "ServiceSubcategory": "Generative AI",
        "SkuId": revision,
        "SkuPriceId": revision,
        "x_CorrectsRecord": str(uuid_from_bytes32(record.corrects_record)) if is_correction else "",
        "x_InputTokens": str(record.input_tokens),
        "x_ModelRevision": revision,
        "x_OutputTokens": str(record.output_tokens),
        "x_Outcome": record.outcome.name.lower(),
        "x_Place": str(row.place),
        "x_SettlementAmount": cost,
        "x_SettlementAsset": caip10(chain_id, record.asset),
    }


def _tokens(row: RecordRow) -> str:
    return str(row.record.input_tokens + row.record.output_tokens)
