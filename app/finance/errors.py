"""Expected failures of finance commands. No HTTP request meets them.

* FinanceError
  - BadMonth, BadInterval, UnknownAccount
  - UnknownRecord, CorrectedAlready, ChargeNotLess, CorrectionConflict
  - PeriodNotOver, PeriodNotReviewed, PeriodClosed, LaterPeriodClosed
  - EarlierPeriodOpen, RecordsUnsealed, TransfersInFlight
  - Unmatched
"""

from typing import ClassVar
from uuid import UUID

from app.kit.ids import IdPrefix, format_id
from ledger.money import Nano, format_amount


class FinanceError(Exception):
    """Base of every expected failure of finance; `next_step` says what to do about it."""

    code: ClassVar[str]
    next_step: ClassVar[str] = ""


class BadMonth(FinanceError):
    """Not a month as YYYY-MM."""

    code = "bad-month"
    next_step = "a month of UTC: 2026-01"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no month")


class BadInterval(FinanceError):
    """The interval is not written as it must be, or ends before it begins."""

    code = "bad-interval"
    next_step = "times of UTC: 2026-01 (its start), 2026-01-31, 2026-01-31T12:00:00Z"


class UnknownAccount(FinanceError):
    """Nothing was ever booked for this holder in this token."""

    code = "unknown-account"
    next_step = "is the address or the supplier's id right, and --asset?"

    def __init__(self, holder: str, asset: str) -> None:
        super().__init__(f"{holder} has no account in {asset}")


class UnknownRecord(FinanceError):
    """There is no such usage record."""

    code = "unknown-record"
    next_step = "record ids are job_...; `offpeak finance statement` shows them"

    def __init__(self, record: UUID) -> None:
        super().__init__(f"no usage record {format_id(IdPrefix.JOB, record)}")


class CorrectedAlready(FinanceError):
    """A later correction stands; only the last of a chain is corrected."""

    code = "corrected-already"
    next_step = "correct the correction"

    def __init__(self, record: UUID) -> None:
        super().__init__(f"{format_id(IdPrefix.JOB, record)} has been corrected")


class ChargeNotLess(FinanceError):
    """A correction charges less than the record did, and not less than nothing."""

    code = "charge-not-less"

    def __init__(self, charge: Nano) -> None:
        super().__init__(f"{format_amount(charge)} is not less than what was charged")


class CorrectionConflict(FinanceError):
    """This id stands for something else already."""

    code = "correction-conflict"

    def __init__(self, record: UUID) -> None:
        super().__init__(f"{format_id(IdPrefix.JOB, record)} says something else")


class PeriodError(FinanceError):
    """Base of what keeps a period from changing its state."""

    def __init__(self, month: str, rows: int = 0) -> None:
        super().__init__(f"{month}: {self.says.format(rows=rows)}")
        self.month = month
        self.rows = rows

    says: ClassVar[str]


class PeriodNotOver(PeriodError):
    """The month has not ended."""

    code = "period-not-over"
    says = "the month is not over"
    next_step = "it is closed after its end, UTC; until then: `offpeak finance export --allow-open`"


class PeriodNotReviewed(PeriodError):
    """Only a soft-closed month is closed or opened again."""

    code = "period-not-soft-closed"
    says = "the month is not soft-closed"
    next_step = "offpeak finance period soft-close MONTH; look at it; then close it"


class PeriodClosed(PeriodError):
    """A closed month stays as it is."""

    code = "period-closed"
    says = "the month is closed, for good"
    next_step = "corrections are booked in the open month: `offpeak finance correct`"


class LaterPeriodClosed(PeriodError):
    """A later month is closed, so nothing can be booked in this one any more."""

    code = "later-period-closed"
    says = "a later month is closed: this one has nothing of its own"


class EarlierPeriodOpen(PeriodError):
    """An earlier month has bookings and is not closed."""

    code = "earlier-period-open"
    says = "an earlier month is not closed and has bookings ({rows})"
    next_step = "close the months in order: `offpeak finance period list`"


class RecordsUnsealed(PeriodError):
    """Records of the month are not in the receipt log yet."""

    code = "records-unsealed"
    says = "records that are not sealed yet: {rows}"
    next_step = "does `offpeak work` run? `offpeak finance reconcile` shows their age"


class TransfersInFlight(PeriodError):
    """A transaction that began before some of the month's transfers still runs."""

    code = "transfers-in-flight"
    says = "a transaction still runs that began before {rows} transfers of the month"
    next_step = "try again in a few seconds"


class Unmatched(FinanceError):
    """The ledger, the records and the log do not agree, or something waits for too long."""

    code = "unmatched"
    next_step = "each is listed above with its age"

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} unmatched")
        self.count = count
