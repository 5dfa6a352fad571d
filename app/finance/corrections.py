"""Charging less for what was charged: a record of its own, booked when it is made."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import text

from app.db.engine import Database
from app.finance.errors import ChargeNotLess, CorrectedAlready, CorrectionConflict, UnknownRecord
from ledger.money import MAX_NANO, Nano

MAX_REASON: Final = 1_000
"""Most characters of a correction's reason."""

CORRECT = text("SELECT offpeak.correct_record(:record, :corrects, :charge, :because)")
REFUND = text("SELECT u.released FROM offpeak.usage_record u WHERE u.record_id = :record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What an operator says: `corrects` should have been charged `charge`, because ...

    `record_id` is the new record's id; repeating the whole under the same id changes nothing.
    """

    record_id: UUID
    corrects: UUID
    charge: Nano
    because: str


class Corrections:
    """Makes corrections, under the operator's role."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def correct(self, said: Correction) -> Nano:
        """Make a correction and return what went back to the wallet, in nano.

        Raises:
            UnknownRecord, CorrectedAlready, ChargeNotLess: nothing was changed.
            CorrectionConflict: `record_id` says something else; nothing was changed.
        """
        assert 0 < len(said.because) <= MAX_REASON
        if not 0 <= said.charge <= MAX_NANO:
            raise ChargeNotLess(said.charge)
        given = {
            "record": said.record_id,
            "corrects": said.corrects,
            "charge": said.charge,
            "because": said.because,
        }
        async with self._database.transaction() as tx:
            code = await tx.scalar(CORRECT, given)
            if code in ("ok", "duplicate"):
                return Nano(int(await tx.scalar(REFUND, given) or 0))
        if code == "unknown":
            raise UnknownRecord(said.corrects)
        if code == "corrected_already":
            raise CorrectedAlready(said.corrects)
        if code == "not_less":
            raise ChargeNotLess(said.charge)
        assert code == "conflict", code
        raise CorrectionConflict(said.record_id)
