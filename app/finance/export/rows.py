"""What an export is made of, as values. Amounts in nano, times in unix seconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.accounts import AccountKind
from ledger.encoding import Address
from ledger.export_row import Cell, caip10, signed_cells
from ledger.log_entry import AssetSums, add_up, sums_of
from ledger.money import Nano
from ledger.usage import Outcome, UsageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A signed, sealed and logged usage record of the interval.

    `place` is its place in the sequence of all sealed records; `corrected_at` when the record
    that a correction corrects was booked, None for all others.
    """

    record: UsageRecord
    signature: bytes
    place: int
    booked_at: int
    model: str
    region: str
    corrected_at: int | None = None

    def cells(self, chain_id: int) -> tuple[Cell, ...]:
        """Return the values of `RECORD_COLUMNS`."""
        signed = signed_cells(self.record, place=self.place, chain_id=chain_id)
        return (*signed, self.booked_at, self.model, self.region)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A record of an overlapped batch: in the export, or known by its leaf hash only."""

    place: int
    hash: bytes
    row: RecordRow | None


@dataclass(frozen=True, slots=True)
class Party:
    """An account of the ledger. `owner` is a wallet's address, a supplier's id, or the house."""

    kind: AccountKind
    owner: str

    def shown_owner(self, chain_id: int) -> str:
        """Return the owner as finance sees it: wallets in CAIP-10 form."""
        is_wallet = self.kind is AccountKind.WALLET
        return caip10(chain_id, Address(self.owner)) if is_wallet else self.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRow:
    """A leg that moved `amount` from `debit` to `credit`."""

    ref: str
    leg: int
    booked_at: int
    created_at: int
    debit: Party
    credit: Party
    asset: Address
    amount: Nano

    def cells(self, chain_id: int) -> tuple[Cell, ...]:
        """Return the values of `TRANSFER_COLUMNS`."""
        return (
            self.ref,
            self.leg,
            self.booked_at,
            self.created_at,
            self.debit.kind,
            self.debit.shown_owner(chain_id),
            self.credit.kind,
            self.credit.shown_owner(chain_id),
            caip10(chain_id, self.asset),
            self.amount,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """An account's balance at the interval's start and end, debits positive."""

    party: Party
    asset: Address
    opening: int
    closing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlace:
    """A batch with records of the interval: its places in the sequence, where its header stands."""

    number: int
    start: int
    end: int
    header: bytes
    log_index: int


@dataclass(slots=True)
class Totals:
    """Counts and sums while the rows go by."""

    records: int = 0
    transfers: int = 0
    sums: tuple[AssetSums, ...] = ()
    """Of the records, per token, by address."""
    paid: dict[Address, Nano] = field(default_factory=dict)
    """What wallets paid in the interval: charges, less what corrections gave back."""

    def add(self, rows: Sequence[RecordRow]) -> None:
        """Count records."""
        self.records += len(rows)
        self.sums = add_up((*self.sums, *(sums_of(row.record) for row in rows)))
        for row in rows:
            record = row.record
            corrects = record.outcome is Outcome.CORRECTION
            moved = -record.released_nano if corrects else record.charge_nano
            self.paid[record.asset] = Nano(self.paid.get(record.asset, 0) + moved)
