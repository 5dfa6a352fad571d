"""The books with a chain under them: events as a watcher would store and book them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from app.finance.rule import rules
from ledger.accounts import wallet_account
from ledger.encoding import Address, uuid_bytes32
from tests.integration.books import FAR, Books, digest

CHAIN = 31_337
BASE = 1_000
"""Nano of one base unit."""
_PLACES = count(1)


@dataclass(frozen=True, slots=True)
class Seen:
    """An event on the chain; `fork` tells blocks of the same height apart."""

    kind: str
    payer: Address
    amount: int
    block: int
    extra: tuple[tuple[str, str], ...] = ()
    ref: bytes | None = None
    fork: int = 0

    def row(self) -> tuple[object, ...]:
        """Return the values of `record_events`'s arrays."""
        return (
            self.block,
            digest("block", self.block, self.fork),
            digest("tx", self.block),
            0,
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.block),
            self.kind,
            self.payer,
            self.amount,
            self.ref,
            Jsonb(dict(self.extra)),
        )


@dataclass(frozen=True, slots=True)
class Money:
    """A wallet's buckets in nano."""

    available: int
    held: int
    owed: int
    exiting: bool
    aside: int
    """What waits in exit clearing."""
    pending: int
    """What waits in withdrawal clearing."""

    @property
    def total(self) -> int:
        return self.available + self.held + self.aside + self.pending - self.owed


class TreasuryBooks(Books):
    """Books whose money comes from chain events."""

    @contextmanager
    def as_treasury(self) -> Iterator[None]:
        """Do what only the treasury's role may."""
        self.connection.execute("SET ROLE offpeak_treasury")
        yield
        self.connection.execute(f"SET ROLE {self._role}".encode())

    # --- the chain --------------------------------------------------------------------------

    def see(self, event: Seen) -> UUID:
        """Store an event; return its id."""
        with self.as_treasury():
            self.one(
                "SELECT offpeak.record_events(%s, %s::bigint[], %s::bytea[], %s::bytea[],"
                " %s::int[], %s::timestamptz[], %s::text[], %s::text[], %s::numeric[],"
                " %s::bytea[], %s::jsonb[])",
                CHAIN,
                *([value] for value in event.row()),
            )
        block, tx = event.row()[1:3]
        row = self.one(
            "SELECT id FROM offpeak.chain_event WHERE block_hash = %s AND tx_hash = %s", block, tx
        )
        assert isinstance(row.id, UUID)
        return row.id

    def book(self, event: UUID) -> str:
        with self.as_treasury():
            return str(self.one("SELECT offpeak.book_event(%s, %s)", event, self.asset)[0])

    def orphan(self, event: UUID) -> str:
        with self.as_treasury():
            return str(self.one("SELECT offpeak.orphan_event(%s)", event)[0])

    def happened(
        self,
        kind: str,
        payer: Address,
        amount: int,
        *,
        ref: bytes | None = None,
        **extra: object,
    ) -> UUID:
        """See and book an event at the next place of the chain; return its id."""
        pairs = tuple((name, str(value)) for name, value in extra.items())
        event = self.see(Seen(kind, payer, amount, next(_PLACES), pairs, ref))
        assert self.book(event) == "ok"
        return event

    def next_block(self) -> int:
        return next(_PLACES)

    def lapse(self, at: datetime) -> int:
        with self.as_treasury():
            return int(self.one("SELECT offpeak.lapse_exits(%s, %s)", CHAIN, at)[0])

    def cover(self) -> int:
        with self.as_treasury():
            return int(self.one("SELECT offpeak.cover_receivables(100)")[0])

    # --- withdrawals and payouts ------------------------------------------------------------

    def withdraw(
        self, payer: Address, amount: int, *, fee: int = 0, nonce: bytes | None = None
    ) -> Any:
        """Ask for a withdrawal in base units; return code, id, available, held and digest."""
        nonce = nonce or digest(uuid4())
        signed = digest("withdrawal", payer, amount, nonce)
        return self.one(
            "SELECT *, %s::bytea AS digest FROM offpeak.request_withdrawal("
            "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            signed,
            uuid4(),
            signed,
            payer,
            self.asset,
            amount,
            fee,
            fee,
            nonce,
            FAR,
            b"{}",
            b"s" * 65,
        )

    def fail(self, withdrawal: UUID) -> str:
        with self.as_treasury():
            row = self.one(
                "SELECT offpeak.fail_withdrawal(%s, 'not used', %s)", withdrawal, bytes(32)
            )
        return str(row[0])

    def payout(self, supplier: UUID, address: Address, amount: int) -> tuple[str, bytes]:
        """Ask for a payout in base units; return the code and its id as the chain has it."""
        payout_id = uuid4()
        with self.as_operator():
            row = self.one(
                "SELECT offpeak.request_payout(%s, %s, %s, %s, %s)",
                payout_id,
                supplier,
                address,
                self.asset,
                amount,
            )
        return str(row[0]), uuid_bytes32(payout_id)

    # --- looking ----------------------------------------------------------------------------

    def money(self, payer: Address) -> Money:
        """Return a wallet's buckets."""
        row = self.one(
            "SELECT w.available, w.held, w.owed, w.exiting,"
            " coalesce((SELECT sum(e.clearing) FROM offpeak.wallet_exit e"
            "   WHERE e.account_id = w.account_id), 0)::bigint AS aside,"
            " coalesce((SELECT sum(x.amount) FROM offpeak.withdrawal x"
            "   WHERE x.account_id = w.account_id AND x.state = 'pending'), 0)::bigint AS pending"
            " FROM offpeak.wallet_balance w WHERE w.account_id = %s",
            wallet_account(payer, self.asset),
        )
        return Money(*row)

    def broken_rules(self) -> list[tuple[str, Any]]:
        """Return every rule of the ledger check that a row breaks, with the row."""
        found = []
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            for each in rules():
                found += [(each.name, row) for row in cursor.execute(each.query.encode())]
        return found

    def net(self, kind: str) -> int:
        """Return the sum of the transfers of all accounts of a kind."""
        row = self.one(
            "SELECT coalesce(sum(CASE WHEN c.kind = %(kind)s THEN t.amount ELSE 0 END"
            " - CASE WHEN d.kind = %(kind)s THEN t.amount ELSE 0 END), 0)::bigint AS net"
            " FROM offpeak.transfer t JOIN offpeak.account c ON c.id = t.credit"
            " JOIN offpeak.account d ON d.id = t.debit".replace("%(kind)s", f"'{kind}'"),
        )
        return int(row.net)

    def halted(self) -> bool:
        return bool(self.rows("SELECT FROM offpeak.ledger_halt WHERE cleared_at IS NULL"))
