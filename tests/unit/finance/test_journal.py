"""Names that both beancount and hledger take, for whatever the ledger knows."""

import re

from app.finance.export import journal
from app.finance.export.rows import Party
from ledger.accounts import HOUSE, AccountKind
from ledger.encoding import Address

BEANCOUNT_ACCOUNT = re.compile(
    r"(Assets|Liabilities|Equity|Income|Expenses)(:[A-Z0-9][A-Za-z0-9-]*)+"
)
BEANCOUNT_COMMODITY = re.compile(r"[A-Z][A-Z0-9'._-]{0,22}[A-Z0-9]")
OWNERS = {
    AccountKind.WALLET: "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0",
    AccountKind.SUPPLIER: "6c918976-402f-4c4d-b5e1-386bf852385e",
}


def test_every_kind_of_account_has_a_name_of_its_own() -> None:
    names = [journal.account_name(Party(kind, OWNERS.get(kind, HOUSE))) for kind in AccountKind]
    assert all(BEANCOUNT_ACCOUNT.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)


def test_a_token_is_a_commodity() -> None:
    assert BEANCOUNT_COMMODITY.fullmatch(journal.commodity(Address("0x" + "a5" * 20)))


def test_the_days_around_a_moment() -> None:
    midnight = 1_793_491_200  # 2026-11-01T00:00:00Z
    assert journal.day_before(midnight) == "2026-10-31"
    assert journal.day(midnight - 1) == "2026-10-31"
    assert journal.day_after(midnight - 1) == "2026-11-01"
