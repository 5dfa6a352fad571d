"""The demonstration's money on its chain: what came in, and what goes back; no printing here."""

import asyncio
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.chain.contracts import TokenContract
from app.chain.rpc import open_rpc
from app.cli.treasury_view import status_document
from app.client.units import coin_text, token_text
from app.client.withdrawals import Wish, WithdrawalPlan, plan_withdrawal, wait_until_paid
from app.db.engine import Database, open_database
from app.finance.check import LedgerCheck
from app.treasury.parts import status_terms
from app.treasury.schemas import WithdrawalOut
from app.treasury.status import TreasuryStatus
from app.treasury.status_reader import StatusReader
from app.wallets.schemas import BalanceOut
from ledger.encoding import checksum_address

if TYPE_CHECKING:
    from app.client.client import Client
    from app.config import Settings
    from app.embedded.chain import DepositMade
    from app.embedded.stack import Stack

WITHDRAW_SECONDS: Final = 60.0


class MoneyAstray(Exception):
    """Chain and books do not agree after everything: the demonstration has failed."""

    code = "money-astray"


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtBack:
    """The rest of the balance at its wallet again, and the comparison of chain and books."""

    before: BalanceOut
    plan: WithdrawalPlan
    withdrawal: WithdrawalOut
    after: BalanceOut
    wallet_tokens: int
    """Base units that the wallet holds on chain."""
    status: TreasuryStatus
    rules: int
    """Rules of the ledger check, all kept."""

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "withdrawal": self.withdrawal.model_dump(mode="json"),
            "balance_after": self.after.model_dump(mode="json"),
            "wallet_tokens": token_text(self.wallet_tokens),
            "treasury": status_document(self.status),
            "ledger_rules_kept": self.rules,
        }


def deposit_document(made: "DepositMade") -> dict[str, object]:
    """Return the first deposit as JSON."""
    return {
        "amount": token_text(made.amount),
        "way": made.way,
        "transaction": "0x" + made.transaction.hex(),
        "block": made.block,
        "gas_coins": coin_text(made.gas_wei),
    }


def bring_back(client: "Client", stack: "Stack") -> BroughtBack:
    """Withdraw all that is available, wait until that is final, compare chain and books.

    Raises:
        ClientError: the gateway does not do it. MoneyAstray: the sums do not agree.
    """
    assert stack.chain is not None
    before = client.balance()
    wish = Wish(amount=None, max_fee=None)
    plan = plan_withdrawal(client, wish, now=int(time.time()), nonce=secrets.token_bytes(32))
    asked = client.withdraw(plan.message)
    paid = wait_until_paid(client, asked, wait_seconds=WITHDRAW_SECONDS, say=lambda _: None)
    tokens, status, rules = asyncio.run(compared(stack.settings, client))
    return BroughtBack(
        before=before,
        plan=plan,
        withdrawal=paid,
        after=client.balance(),
        wallet_tokens=tokens,
        status=status,
        rules=rules,
    )


async def compared(settings: "Settings", client: "Client") -> tuple[int, TreasuryStatus, int]:
    """Return the wallet's tokens on chain, the treasury's status, and how many rules are kept.

    Raises:
        MoneyAstray: chain and books differ, or a rule of the ledger is broken.
    """
    database = open_database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        async with open_rpc(settings.rpc_url_list) as rpc:
            token = TokenContract(rpc, client.terms.token)
            tokens = await token.balance_of(client.wallet.address, "latest")
            status = await StatusReader(database, rpc, status_terms(settings)).read()
        rules = await _kept_rules(database)
    finally:
        await database.dispose()
    if not status.holds:
        raise MoneyAstray("; ".join(alarm.detail for alarm in status.alarms()))
    return tokens, status, rules


async def _kept_rules(database: Database) -> int:
    report = await LedgerCheck(database).run_and_halt()
    if not report.is_clean:
        raise MoneyAstray(report.summary())
    return len(report.findings)


def deposit_rows(made: "DepositMade", stack: "Stack") -> list[tuple[str, str]]:
    """Return the first deposit as rows of text."""
    assert stack.chain is not None
    treasury = checksum_address(stack.chain.deployed.treasury)
    return [
        ("deposit", f"{token_text(made.amount)} mock USDC, by EIP-3009 {made.way}"),
        ("transaction", f"0x{made.transaction.hex()} in block {made.block}"),
        ("gas", f"{coin_text(made.gas_wei)} native coins of the development chain"),
        ("treasury", f"{treasury} (a contract)"),
        ("balance", f"{token_text(made.amount)}, credited when its block was safe"),
    ]


def brought_back_rows(back: BroughtBack) -> list[tuple[str, str]]:
    """Return what went back, and the comparison, as rows of text."""
    chain = back.status.chain
    assert chain is not None
    relayed = next((each for each in back.withdrawal.transactions if each.hash), None)
    parts = f"{token_text(chain.liability)} owed to wallets, {token_text(chain.earned)} earned"
    where = f"{relayed.hash} in block {relayed.block}" if relayed else "none"
    return [
        (
            "available",
            f"{back.before.available} before, {back.after.available} after (it has six decimals)",
        ),
        ("withdrawn", f"{back.withdrawal.amount}, fee {back.withdrawal.fee}"),
        ("signed", f"{back.withdrawal.digest} (digest of the withdrawal)"),
        ("transaction", f"{where}, final"),
        ("wallet", f"{token_text(back.wallet_tokens)} mock USDC on chain"),
        ("treasury", f"{token_text(chain.tokens)} on chain: {parts}"),
        ("chain", f"agrees with the books to the unit at final block {chain.block.number}"),
        ("ledger", f"{back.rules} rules kept"),
    ]
