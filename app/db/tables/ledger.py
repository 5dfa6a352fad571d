"""Accounts, holds and transfers: the ledger."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from app.db.tables.base import Xid8, metadata, not_negative, one_of, positive, timestamp

account = Table(
    "account",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("asset", Text, nullable=False),
    Column("kind", Text, nullable=False),
    timestamp("created_at", default=True),
    UniqueConstraint("owner", "asset", "kind"),
    one_of(
        "kind",
        "wallet",
        "supplier",
        "fee",
        "treasury",
        "withdraw_clearing",
        "deposit_clearing",
        "suspense",
        "exit_clearing",
        "payout_clearing",
        "receivable",
    ),
)

wallet_balance = Table(
    "wallet_balance",
    metadata,
    Column("account_id", Uuid, ForeignKey(account.c.id), primary_key=True),
    Column("available", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("open_jobs", Integer, nullable=False),
    Column("payer_seq", BigInteger, nullable=False, server_default="0"),
    Column("last_record", Uuid),
    # what the wallet got and did not have: its receivable; until it is covered nothing is accepted
    Column("owed", BigInteger, nullable=False, server_default="0"),
    # an exit is open on chain: its money may leave without us
    Column("exiting", Boolean, nullable=False, server_default=text("false")),
    Index("ix_wallet_balance_owed", "account_id", postgresql_where=text("owed > 0")),
    not_negative("owed"),
    not_negative("available"),
    not_negative("held"),
    not_negative("open_jobs"),
    postgresql_with={"fillfactor": "50"},
)

hold = Table(
    "hold",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("account_id", Uuid, nullable=False),
    Column("amount", BigInteger, nullable=False),
    timestamp("created_at"),
    timestamp("expires_at"),
    # the target of hold_resolution's foreign key, which makes charge <= hold a CHECK
    UniqueConstraint("id", "amount"),
    positive("amount"),
)

hold_resolution = Table(
    "hold_resolution",
    metadata,
    Column("hold_id", Uuid, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("released", BigInteger, nullable=False),
    timestamp("resolved_at"),
    ForeignKeyConstraint(["hold_id", "amount"], [hold.c.id, hold.c.amount]),
    CheckConstraint("charged + released = amount", "conserved"),
    CheckConstraint("(kind = 'settled') = (charged > 0)", "zero_is_a_release"),
    one_of("kind", "settled", "released", "expired"),
    not_negative("charged"),
    not_negative("released"),
)

transfer = Table(
    "transfer",
    metadata,
    Column("ref", Uuid),
    Column("leg", SmallInteger),
    Column("debit", Uuid, nullable=False),
    Column("credit", Uuid, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("asset", Text, nullable=False),
    timestamp("created_at"),
    Column("xid", Xid8, nullable=False, server_default=text("pg_current_xact_id()")),
    PrimaryKeyConstraint("ref", "leg"),
    CheckConstraint("debit <> credit", "two_sides"),
    Index("ix_transfer_xid", "xid"),
    # rows lie in the order of their time, so a page range per entry finds a day; costs a settlement
    # nothing that can be measured
    Index(
        "ix_transfer_created",
        "created_at",
        postgresql_using="brin",
        postgresql_with={"autosummarize": "on"},
    ),
    positive("amount"),
)

house_balance = Table(
    "house_balance",
    metadata,
    Column("account_id", Uuid, primary_key=True),
    Column("balance", BigInteger, nullable=False),
    # every transfer with a smaller xid is inside `balance`, none with a larger or equal one
    Column("up_to", Xid8, nullable=False),
)

ledger_halt = Table(
    "ledger_halt",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("reason", Text, nullable=False),
    timestamp("halted_at", default=True),
    timestamp("cleared_at", nullable=True),
    Column("cleared_because", Text),
    CheckConstraint("(cleared_at IS NULL) = (cleared_because IS NULL)", "cleared"),
)
