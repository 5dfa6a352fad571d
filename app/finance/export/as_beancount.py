"""A beancount file: every leg explicit, every balance asserted with a tolerance of nothing."""

from collections.abc import Iterable

from app.finance.export import journal
from app.finance.export.rows import AccountRow, TransferRow
from app.finance.export.writer import Scope, Writer
from ledger.encoding import Address
from ledger.export_row import caip10, time_text


class BeancountWriter(Writer):
    """Writes `offpeak.beancount`."""

    takes_accounts = True

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._opens = journal.day_before(scope.from_at)
        self._assets: set[Address] = set()
        self._opened = ""
        self._file = (scope.folder / "offpeak.beancount").open("w", encoding="utf-8", newline="\n")
        start, end = time_text(scope.from_at), time_text(scope.to_at)
        self._file.write(
            f'option "title" "OFFPEAK {start} to {end}"\n'
            f"{self._opens} open {journal.OPENING_ACCOUNT}\n"
        )

    def accounts(self, rows: Iterable[AccountRow]) -> None:
        """Open accounts, bring their balances forward and assert them."""
        write, opens = self._file.write, self._opens
        first = journal.day(self._scope.from_at)
        for row in rows:
            name, token = journal.account_name(row.party), journal.commodity(row.asset)
            if row.asset not in self._assets:
                self._assets.add(row.asset)
                asset = caip10(self._scope.chain_id, row.asset)
                write(f'{opens} commodity {token}\n  asset: "{asset}"\n  precision: 9\n')
            if name != self._opened:
                self._opened = name
                owner = row.party.shown_owner(self._scope.chain_id)
                write(f'{opens} open {name}\n  owner: "{owner}"\n')
            if row.opening:
                write(
                    f'{opens} * "opening balance"\n'
                    f"  {name}  {journal.amount_text(row.opening)} {token}\n"
                    f"  {journal.OPENING_ACCOUNT}  {journal.amount_text(-row.opening)} {token}\n"
                )
            write(f"{first} balance {name}  {journal.amount_text(row.opening)} ~ 0 {token}\n")

    def transfers(self, rows: Iterable[TransferRow]) -> None:
        """Write each leg of the ledger as a transaction of two postings."""
        for row in rows:
            token, amount = journal.commodity(row.asset), journal.amount_text(row.amount)
            self._file.write(
                f'{journal.day(row.booked_at)} * "{row.debit.kind} to {row.credit.kind}"\n'
                f'  ref: "{row.ref}"\n'
                f"  leg: {row.leg}\n"
                f'  booked_at: "{time_text(row.booked_at)}"\n'
                f"  {journal.account_name(row.debit)}  {amount} {token}\n"
                f"  {journal.account_name(row.credit)}  -{amount} {token}\n"
            )

    def closing(self, rows: Iterable[AccountRow]) -> None:
        """Assert the balances after the last day."""
        after = journal.day_after(self._scope.to_at - 1)
        for row in rows:
            name, token = journal.account_name(row.party), journal.commodity(row.asset)
            self._file.write(
                f"{after} balance {name}  {journal.amount_text(row.closing)} ~ 0 {token}\n"
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
