"""What a row of FOCUS 1.2 may say: our own check of every column that we write.

Source: FinOps Open Cost and Usage Specification 1.2, the pages of the columns and of the
attributes "Currency Format", "Date/Time Format", "Numeric Format", "Null Handling" and "Column
Naming". Every row is checked before it is written.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import ClassVar, Final

from ledger.encoding import checksum_address, parse_address
from ledger.errors import BadAddress, BadEntry
from ledger.export_row import parse_time

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_WORD = re.compile(r"0x[0-9a-f]{64}")
_VIRTUAL = re.compile(r"T[0-9A-F]{20}")
_REGION = re.compile(r"[^\s\x00-\x1f][^\x00-\x1f]{0,99}")
_CHAIN = re.compile(r"[1-9][0-9]{0,15}")
SUBCATEGORIES: Final = frozenset(
    {
        "Bots",
        "Generative AI",
        "Machine Learning",
        "Natural Language Processing",
        "Other (AI and Machine Learning)",
    }
)
"""Those whose parent is `AI and Machine Learning`."""

Rule = Callable[[str], str | None]
"""What is wrong with a cell, None when nothing is."""


class FocusRefused(Exception):
    """A row breaks a rule of FOCUS 1.2."""

    code: ClassVar[str] = "focus-refused"
    next_step = "report it with the row: this is a fault of the export, not of the data"

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"{column}: {reason}")
        self.column = column
        self.reason = reason


def one_of(*values: str) -> Rule:
    """Return the rule that a cell has one of these values."""
    return lambda cell: None if cell in values else f"not one of {', '.join(values) or 'nothing'}"


def nullable(rule: Rule) -> Rule:
    """Return the rule that a cell is null, which CSV writes as nothing, or as `rule` says."""
    return lambda cell: None if cell == "" else rule(cell)


def number(cell: str) -> str | None:
    """Check a number as "Numeric Format" has it: no sign but minus, no separator, no unit."""
    return None if _NUMBER.fullmatch(cell) else "not a plain decimal number"


def not_negative(cell: str) -> str | None:
    """Check a number of zero or more."""
    return number(cell) or ("negative" if cell.startswith("-") else None)


def positive(cell: str) -> str | None:
    """Check a number above zero."""
    return not_negative(cell) or (None if Decimal(cell) else "zero")


def time(cell: str) -> str | None:
    """Check a time as "Date/Time Format" has it: ISO 8601 in UTC."""
    try:
        parse_time(cell, "time")
    except BadEntry as error:
        return error.reason
    return None


def words(cell: str) -> str | None:
    """Check a text: there, without control characters and without space around it."""
    return None if cell and cell == cell.strip() and cell.isprintable() else "no readable text"


def caip10(cell: str) -> str | None:
    """Check an account in CAIP-10 form with an EIP-55 address."""
    namespace, _, rest = cell.partition(":")
    chain, _, address = rest.partition(":")
    if namespace != "eip155" or not _CHAIN.fullmatch(chain):
        return "not eip155:<chain>:<address>"
    try:
        known = checksum_address(parse_address(address))
    except BadAddress:
        return "no address with a right checksum"
    return None if address == known else "not in EIP-55 form"


def matching(pattern: re.Pattern[str], what: str) -> Rule:
    """Return the rule that a cell is of a form."""
    return lambda cell: None if pattern.fullmatch(cell) else f"not {what}"


COLUMNS: Final[Mapping[str, Rule]] = {
    "BilledCost": number,
    "BillingAccountId": caip10,
    "BillingAccountName": words,
    "BillingCurrency": one_of("USD"),
    "BillingPeriodEnd": time,
    "BillingPeriodStart": time,
    "ChargeCategory": one_of("Usage", "Purchase", "Tax", "Credit", "Adjustment"),
    "ChargeClass": nullable(one_of("Correction")),
    "ChargeDescription": words,
    "ChargeFrequency": one_of("One-Time", "Recurring", "Usage-Based"),
    "ChargePeriodEnd": time,
    "ChargePeriodStart": time,
    "ConsumedQuantity": nullable(not_negative),
    "ConsumedUnit": nullable(one_of("Tokens")),
    "ContractedCost": number,
    "ContractedUnitPrice": nullable(not_negative),
    "EffectiveCost": number,
    "InvoiceIssuerName": words,
    "ListCost": number,
    "ListUnitPrice": nullable(not_negative),
    "PricingCategory": nullable(one_of("Standard", "Dynamic", "Committed", "Other")),
    "PricingCurrency": matching(_VIRTUAL, "a settlement token's code"),
    "PricingCurrencyContractedUnitPrice": nullable(not_negative),
    "PricingCurrencyEffectiveCost": number,
    "PricingCurrencyListUnitPrice": nullable(not_negative),
    "PricingQuantity": nullable(number),
    "PricingUnit": nullable(one_of("Requests")),
    "ProviderName": words,
    "PublisherName": words,
    "RegionId": nullable(matching(_REGION, "a region")),
    "RegionName": nullable(matching(_REGION, "a region")),
    "ResourceId": nullable(words),
    "ServiceCategory": one_of("AI and Machine Learning"),
    "ServiceName": words,
    "ServiceSubcategory": one_of(*sorted(SUBCATEGORIES)),
    "SkuId": nullable(matching(_WORD, "0x and 64 hex digits")),
    "SkuPriceId": nullable(matching(_WORD, "0x and 64 hex digits")),
    "x_CorrectsRecord": nullable(words),
    "x_InputTokens": not_negative,
    "x_ModelRevision": matching(_WORD, "0x and 64 hex digits"),
    "x_OutputTokens": not_negative,
    "x_Outcome": one_of("completed", "failed", "cancelled", "correction"),
    "x_Place": not_negative,
    "x_SettlementAmount": number,
    "x_SettlementAsset": caip10,
}
"""Every column of `focus.csv` in order, with the rule of its cell alone."""


def check_row(row: Mapping[str, str]) -> None:
    """Check a row: every cell, then what cells say together.

    Raises:
        FocusRefused: the first column that breaks a rule.
    """
    if tuple(row) != tuple(COLUMNS):
        raise FocusRefused("columns", "not those of the table, in its order")
    for name, rule in COLUMNS.items():
        reason = rule(row[name])
        if reason is not None:
            raise FocusRefused(name, f"{row[name][:60]!r} is {reason}")
    _check_periods(row)
    _check_nulls(row)
    _check_costs(row)


def _check_periods(row: Mapping[str, str]) -> None:
    for end, start in (
        ("BillingPeriodEnd", "BillingPeriodStart"),
        ("ChargePeriodEnd", "ChargePeriodStart"),
    ):
        if row[end] <= row[start]:
            raise FocusRefused(end, f"not after {start}")


def _check_nulls(row: Mapping[str, str]) -> None:
    """Check the columns that a usage charge must have unless it is a correction."""
    if row["ChargeCategory"] != "Usage":
        raise FocusRefused("ChargeCategory", "this export has usage only")
    if row["ChargeClass"] == "" and row["x_Outcome"] != "correction":
        for name in (
            "ConsumedQuantity",
            "ContractedUnitPrice",
            "ListUnitPrice",
            "PricingCategory",
            "PricingQuantity",
            "SkuId",
            "SkuPriceId",
        ):
            if row[name] == "":
                raise FocusRefused(name, "null for usage that is no correction")
    for quantity, unit in (
        ("ConsumedQuantity", "ConsumedUnit"),
        ("PricingQuantity", "PricingUnit"),
    ):
        if (row[quantity] == "") != (row[unit] == ""):
            raise FocusRefused(unit, f"null only together with {quantity}")
    if (row["RegionId"] == "") != (row["RegionName"] == ""):
        raise FocusRefused("RegionName", "null only together with RegionId")
    if (row["x_Outcome"] == "correction") != (row["x_CorrectsRecord"] != ""):
        raise FocusRefused("x_CorrectsRecord", "there for a correction and nothing else")
    if row["ChargeClass"] == "Correction" and row["x_Outcome"] != "correction":
        raise FocusRefused("ChargeClass", "Correction of a record that corrects nothing")


def _check_costs(row: Mapping[str, str]) -> None:
    billed = Decimal(row["BilledCost"])
    for name in (
        "ContractedCost",
        "EffectiveCost",
        "ListCost",
        "PricingCurrencyEffectiveCost",
        "x_SettlementAmount",
    ):
        if Decimal(row[name]) != billed:
            raise FocusRefused(name, "not the billed cost")
    for price, cost in (("ContractedUnitPrice", "ContractedCost"), ("ListUnitPrice", "ListCost")):
        if row[price] and Decimal(row[price]) * Decimal(row["PricingQuantity"]) != Decimal(
            row[cost]
        ):
            raise FocusRefused(price, f"times PricingQuantity is not {cost}")
    if row["x_Outcome"] != "correction" and billed < 0:
        raise FocusRefused("BilledCost", "negative without a correction")
