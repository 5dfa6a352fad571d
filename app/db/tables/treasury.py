"""The chain as we know it: its events, our transactions on it, and what both mean for the books.

Amounts of the contract are base units in `Numeric`; money of the ledger is nano in `BigInteger`.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.db.tables.base import metadata, not_negative, one_of, positive, timestamp

BASE_UNITS = Numeric(78, 0)

chain_event = Table(
    "chain_event",
    metadata,
    # follows from chain, block, transaction and log index, so the same event is the same row
    Column("id", Uuid, primary_key=True),
    Column("chain_id", BigInteger, nullable=False),
    Column("block_number", BigInteger, nullable=False),
    Column("block_hash", LargeBinary, nullable=False),
    Column("tx_hash", LargeBinary, nullable=False),
    Column("log_index", Integer, nullable=False),
    timestamp("mined_at"),
    Column("kind", Text, nullable=False),
    # the wallet, supplier address or sender that it is about; '' where it is about none
    Column("payer", Text, nullable=False),
    Column("amount", BASE_UNITS, nullable=False),
    Column("ref", LargeBinary),
    Column("extra", JSONB, nullable=False),
    Column("state", Text, nullable=False),
    timestamp("seen_at"),
    timestamp("booked_at", nullable=True),
    UniqueConstraint("chain_id", "tx_hash", "log_index", "block_hash"),
    Index("ix_chain_event_place", "chain_id", "block_number", "log_index"),
    Index("ix_chain_event_payer", "payer", "kind"),
    Index(
        "ix_chain_event_waiting",
        "chain_id",
        "block_number",
        "log_index",
        postgresql_where=text("state = 'seen'"),
    ),
    one_of(
        "kind",
        "deposited",
        "withdrawn",
        "spend-committed",
        "refunded",
        "unaccounted-credited",
        "paid-out",
        "payout-failed",
        "exit-requested",
        "exit-reduced",
        "exit-cancelled",
        "exit-finalized",
        "plain-transfer",
        "published",
    ),
    one_of("state", "seen", "booked", "orphaned"),
    not_negative("amount"),
)

chain_cursor = Table(
    "chain_cursor",
    metadata,
    # every event up to this final block is stored
    Column("chain_id", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    timestamp("moved_at"),
    not_negative("number"),
)

withdrawal = Table(
    "withdrawal",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("account_id", Uuid, nullable=False),
    Column("payer", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("max_fee", BigInteger, nullable=False),
    Column("fee", BigInteger, nullable=False),
    Column("nonce", LargeBinary, nullable=False),
    timestamp("deadline"),
    Column("message", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    timestamp("requested_at"),
    timestamp("ended_at", nullable=True),
    Column("reason", Text),
    # the Withdrawn event that paid it
    Column("event_id", Uuid),
    UniqueConstraint("payer", "nonce"),
    Index("ix_withdrawal_account_id", "account_id", "id"),
    Index("ix_withdrawal_pending", "deadline", postgresql_where=text("state = 'pending'")),
    one_of("state", "pending", "paid", "failed"),
    CheckConstraint("fee >= 0 AND fee <= max_fee AND fee < amount", "fee_within"),
    CheckConstraint("(state = 'pending') = (ended_at IS NULL)", "ended"),
    CheckConstraint("(state = 'paid') = (event_id IS NOT NULL)", "paid"),
    CheckConstraint("(state = 'failed') = (reason IS NOT NULL)", "failed"),
    positive("amount"),
)

wallet_exit = Table(
    "wallet_exit",
    metadata,
    # its ExitRequested event
    Column("id", Uuid, ForeignKey(chain_event.c.id), primary_key=True),
    Column("account_id", Uuid, nullable=False),
    Column("payer", Text, nullable=False),
    Column("amount", BASE_UNITS, nullable=False),
    timestamp("ready_at"),
    Column("state", Text, nullable=False),
    # nano that wait in exit clearing for it
    Column("clearing", BigInteger, nullable=False),
    Column("replaced_by", Uuid),
    timestamp("ended_at", nullable=True),
    Index(
        "uq_wallet_exit_open",
        "account_id",
        unique=True,
        postgresql_where=text("state = 'open'"),
    ),
    one_of("state", "open", "finalized", "cancelled", "reduced", "lapsed", "replaced", "orphaned"),
    CheckConstraint("(state = 'open') = (ended_at IS NULL)", "ended"),
    CheckConstraint("(state = 'replaced') = (replaced_by IS NOT NULL)", "replaced"),
    CheckConstraint("state = 'open' OR clearing = 0", "cleared"),
    not_negative("clearing"),
)

suspense_claim = Table(
    "suspense_claim",
    metadata,
    Column("id", Uuid, primary_key=True),
    # the plain transfer that is claimed, once
    Column("event_id", Uuid, ForeignKey(chain_event.c.id), nullable=False, unique=True),
    Column("payer", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("message", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    timestamp("requested_at"),
    timestamp("credited_at", nullable=True),
    one_of("state", "requested", "credited"),
    CheckConstraint("(state = 'credited') = (credited_at IS NOT NULL)", "credited"),
)

payout = Table(
    "payout",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("supplier_id", Uuid, nullable=False),
    Column("address", Text, nullable=False),
    Column("asset", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("last_error", Text),
    timestamp("requested_at"),
    timestamp("paid_at", nullable=True),
    Index("ix_payout_supplier_id", "supplier_id", "id"),
    one_of("state", "pending", "paid"),
    CheckConstraint("(state = 'paid') = (paid_at IS NOT NULL)", "paid"),
    CheckConstraint("amount > 0 AND mod(amount, 1000) = 0", "base_units"),
)

wallet_chain = Table(
    "wallet_chain",
    metadata,
    # what the contract last said of a wallet, base units: cumulative spend, and all refunds
    Column("account_id", Uuid, primary_key=True),
    Column("spent", BASE_UNITS, nullable=False),
    Column("refunded", BASE_UNITS, nullable=False),
    not_negative("spent"),
    not_negative("refunded"),
)

anchor = Table(
    "anchor",
    metadata,
    # a root that the anchor contract holds, by the log's size
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("event_id", Uuid, ForeignKey(chain_event.c.id), nullable=False, unique=True),
    timestamp("anchored_at"),
)

chain_transaction = Table(
    "chain_transaction",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("chain_id", BigInteger, nullable=False),
    Column("sender", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("subject", Uuid, nullable=False),
    Column("to_address", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("nonce", BigInteger),
    Column("gas", BigInteger),
    Column("mined_hash", LargeBinary),
    Column("mined_number", BigInteger),
    Column("mined_block", LargeBinary),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
    timestamp("not_before", nullable=True),
    timestamp("created_at"),
    timestamp("ended_at", nullable=True),
    UniqueConstraint("chain_id", "sender", "nonce"),
    Index(
        "uq_chain_transaction_open",
        "purpose",
        "subject",
        unique=True,
        postgresql_where=text("state IN ('queued', 'signed', 'mined')"),
    ),
    Index(
        "ix_chain_transaction_open",
        "chain_id",
        "sender",
        postgresql_where=text("state IN ('queued', 'signed', 'mined')"),
    ),
    Index("ix_chain_transaction_subject", "subject"),
    Index("ix_chain_transaction_purpose", "chain_id", "purpose", "id"),
    one_of("purpose", "withdrawal", "payout", "commit", "refund", "credit", "anchor"),
    one_of("state", "queued", "signed", "mined", "done", "reverted", "cancelled", "abandoned"),
    CheckConstraint("(nonce IS NULL) = (state IN ('queued', 'cancelled'))", "nonce"),
    CheckConstraint(
        "(state IN ('mined', 'done', 'reverted') AND mined_hash IS NOT NULL"
        " OR state IN ('queued', 'signed', 'cancelled') AND mined_hash IS NULL"
        " OR state = 'abandoned')"
        " AND (mined_hash IS NULL) = (mined_number IS NULL)"
        " AND (mined_hash IS NULL) = (mined_block IS NULL)",
        "mined",
    ),
    CheckConstraint(
        "(state IN ('done', 'reverted', 'cancelled', 'abandoned')) = (ended_at IS NOT NULL)",
        "ended",
    ),
)

chain_attempt = Table(
    "chain_attempt",
    metadata,
    # one signed form of a transaction; replacements have the same nonce and higher fees
    Column("hash", LargeBinary, primary_key=True),
    Column("transaction_id", Uuid, ForeignKey(chain_transaction.c.id), nullable=False, index=True),
    Column("raw", LargeBinary, nullable=False),
    Column("max_fee", BASE_UNITS, nullable=False),
    Column("priority_fee", BASE_UNITS, nullable=False),
    timestamp("created_at"),
    timestamp("broadcast_at", nullable=True),
    positive("max_fee"),
    not_negative("priority_fee"),
)
