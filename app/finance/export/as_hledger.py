"""An hledger journal that `hledger check --strict` takes: all declared, all legs, all asserted."""

from collections.abc import Iterable

from app.finance.export import journal
from app.finance.export.rows import AccountRow, TransferRow
from app.finance.export.writer import Scope, Writer
from ledger.encoding import Address
from ledger.export_row import caip10, time_text


class HledgerWriter(Writer):
    """Writes `offpeak.journal`."""

    takes_accounts = True

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._opens = journal.day_before(scope.from_at)
        self._last = journal.day(scope.to_at - 1)
        self._assets: set[Address] = set()
        self._declared = ""
        self._file = (scope.folder / "offpeak.journal").open("w", encoding="utf-8", newline="\n")
        start, end = time_text(scope.from_at), time_text(scope.to_at)
        self._file.write(
            f"; OFFPEAK {start} to {end}\ndecimal-mark .\naccount {journal.OPENING_ACCOUNT}\n"
        )

    def accounts(self, rows: Iterable[AccountRow]) -> None:
        """Declare accounts, bring their balances forward and assert them."""
        for row in rows:
            name, token = journal.account_name(row.party), _quoted(row.asset)
            if row.asset not in self._assets:
                self._assets.add(row.asset)
                asset = caip10(self._scope.chain_id, row.asset)
                self._file.write(f"commodity 1000.000000000 {token}\n  ; asset: {asset}\n")
            if name != self._declared:
                self._declared = name
                self._file.write(f"account {name}\n")
            amount = journal.amount_text(row.opening)
            self._file.write(
                f"{self._opens} * opening balance\n"
                f"    {name}  {amount} {token} = {amount} {token}\n"
                f"    {journal.OPENING_ACCOUNT}  {journal.amount_text(-row.opening)} {token}\n\n"
            )

    def transfers(self, rows: Iterable[TransferRow]) -> None:
        """Write each leg of the ledger as a transaction of two postings."""
        for row in rows:
            token, amount = _quoted(row.asset), journal.amount_text(row.amount)
            self._file.write(
                f"{journal.day(row.booked_at)} * {row.debit.kind} to {row.credit.kind}"
                f"  ; ref:{row.ref}, leg:{row.leg}, booked_at:{time_text(row.booked_at)}\n"
                f"    {journal.account_name(row.debit)}  {amount} {token}\n"
                f"    {journal.account_name(row.credit)}  -{amount} {token}\n\n"
            )

    def closing(self, rows: Iterable[AccountRow]) -> None:
        """Assert the balances at the end of the last day."""
        for row in rows:
            name, token = journal.account_name(row.party), _quoted(row.asset)
            amount = journal.amount_text(row.closing)
            self._file.write(
                f"{self._last} * closing balance\n"
                f"    {name}  0.000000000 {token} = {amount} {token}\n\n"
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _quoted(asset: Address) -> str:
    """Return the commodity in the quotes that hledger wants around digits."""
    return f'"{journal.commodity(asset)}"'
