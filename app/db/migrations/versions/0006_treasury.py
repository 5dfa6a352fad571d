"""The chain: its events, withdrawals, exits, payouts, our transactions, anchors."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

KINDS = (
    "kind IN ('wallet', 'supplier', 'fee', 'treasury', 'withdraw_clearing', 'deposit_clearing',"
    " 'suspense', 'exit_clearing', 'payout_clearing', 'receivable')"
)


def upgrade() -> None:
    op.drop_constraint(op.f("ck_account_kind"), "account", schema="offpeak")
    op.create_check_constraint(op.f("ck_account_kind"), "account", KINDS, schema="offpeak")
    add_columns()
    create_chain_cursor()
    create_chain_event()
    create_chain_transaction()
    create_payout()
    create_wallet_chain()
    create_withdrawal()
    create_anchor()
    create_chain_attempt()
    create_suspense_claim()
    create_wallet_exit()


def add_columns() -> None:
    op.add_column(
        "supplier", sa.Column("payout_address", sa.Text()), schema="offpeak"
    )
    op.add_column(
        "wallet_balance",
        sa.Column("owed", sa.BigInteger(), server_default="0", nullable=False),
        schema="offpeak",
    )
    op.add_column(
        "wallet_balance",
        sa.Column("exiting", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        schema="offpeak",
    )
    op.create_index("ix_wallet_balance_owed", "wallet_balance", ["account_id"], schema="offpeak", postgresql_where=sa.text("owed > 0"))
    op.create_check_constraint(
        op.f("ck_wallet_balance_owed"), "wallet_balance", "owed >= 0", schema="offpeak"
    )
    op.create_check_constraint(
        op.f("ck_supplier_payout_address"),
        "supplier",
        "payout_address ~ '^0x[0-9a-f]{40}$'",
        schema="offpeak",
    )


def create_chain_cursor() -> None:
    op.create_table(
        "chain_cursor",
        sa.Column("chain_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("moved_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("number >= 0", name=op.f("ck_chain_cursor_number")),
        sa.PrimaryKeyConstraint("chain_id", name=op.f("pk_chain_cursor")),
        schema="offpeak",
    )


def create_chain_event() -> None:
    op.create_table(
        "chain_event",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.LargeBinary(), nullable=False),
        sa.Column("tx_hash", sa.LargeBinary(), nullable=False),
        sa.Column("log_index", sa.Integer(), nullable=False),
        sa.Column("mined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payer", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(78, 0), nullable=False),
        sa.Column("ref", sa.LargeBinary()),
        sa.Column("extra", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("booked_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(
            "kind IN ('deposited', 'withdrawn', 'spend-committed', 'refunded', 'unaccounted-credited', 'paid-out', 'payout-failed', 'exit-requested', 'exit-reduced', 'exit-cancelled', 'exit-finalized', 'plain-transfer', 'published')",
            name=op.f("ck_chain_event_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('seen', 'booked', 'orphaned')", name=op.f("ck_chain_event_state")
        ),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_chain_event_amount")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chain_event")),
        sa.UniqueConstraint(
            "chain_id",
            "tx_hash",
            "log_index",
            "block_hash",
            name=op.f("uq_chain_event_chain_id_tx_hash_log_index_block_hash"),
        ),
        schema="offpeak",
    )
    op.create_index("ix_chain_event_payer", "chain_event", ["payer", "kind"], schema="offpeak")
    op.create_index("ix_chain_event_place", "chain_event", ["chain_id", "block_number", "log_index"], schema="offpeak")
    op.create_index("ix_chain_event_waiting", "chain_event", ["chain_id", "block_number", "log_index"], schema="offpeak", postgresql_where=sa.text("state = 'seen'"))


def create_chain_transaction() -> None:
    op.create_table(
        "chain_transaction",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("subject", sa.Uuid(), nullable=False),
        sa.Column("to_address", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("nonce", sa.BigInteger()),
        sa.Column("gas", sa.BigInteger()),
        sa.Column("mined_hash", sa.LargeBinary()),
        sa.Column("mined_number", sa.BigInteger()),
        sa.Column("mined_block", sa.LargeBinary()),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.Column("not_before", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(
            "(nonce IS NULL) = (state IN ('queued', 'cancelled'))",
            name=op.f("ck_chain_transaction_nonce"),
        ),
        sa.CheckConstraint(
            "(state IN ('done', 'reverted', 'cancelled', 'abandoned')) = (ended_at IS NOT NULL)",
            name=op.f("ck_chain_transaction_ended"),
        ),
        sa.CheckConstraint(
            "(state IN ('mined', 'done', 'reverted') AND mined_hash IS NOT NULL OR state IN ('queued', 'signed', 'cancelled') AND mined_hash IS NULL OR state = 'abandoned') AND (mined_hash IS NULL) = (mined_number IS NULL) AND (mined_hash IS NULL) = (mined_block IS NULL)",
            name=op.f("ck_chain_transaction_mined"),
        ),
        sa.CheckConstraint(
            "purpose IN ('withdrawal', 'payout', 'commit', 'refund', 'credit', 'anchor')",
            name=op.f("ck_chain_transaction_purpose"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'signed', 'mined', 'done', 'reverted', 'cancelled', 'abandoned')",
            name=op.f("ck_chain_transaction_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chain_transaction")),
        sa.UniqueConstraint(
            "chain_id", "sender", "nonce", name=op.f("uq_chain_transaction_chain_id_sender_nonce")
        ),
        schema="offpeak",
    )
    index_chain_transaction()


def index_chain_transaction() -> None:
    op.create_index("ix_chain_transaction_open", "chain_transaction", ["chain_id", "sender"], schema="offpeak", postgresql_where=sa.text("state IN ('queued', 'signed', 'mined')"))
    op.create_index("ix_chain_transaction_purpose", "chain_transaction", ["chain_id", "purpose", "id"], schema="offpeak")
    op.create_index("ix_chain_transaction_subject", "chain_transaction", ["subject"], schema="offpeak")
    op.create_index("uq_chain_transaction_open", "chain_transaction", ["purpose", "subject"], unique=True, schema="offpeak", postgresql_where=sa.text("state IN ('queued', 'signed', 'mined')"))


def create_payout() -> None:
    op.create_table(
        "payout",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("supplier_id", sa.Uuid(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("paid_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("(state = 'paid') = (paid_at IS NOT NULL)", name=op.f("ck_payout_paid")),
        sa.CheckConstraint("state IN ('pending', 'paid')", name=op.f("ck_payout_state")),
        sa.CheckConstraint("amount > 0 AND mod(amount, 1000) = 0", name=op.f("ck_payout_base_units")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payout")),
        schema="offpeak",
    )
    op.create_index("ix_payout_supplier_id", "payout", ["supplier_id", "id"], schema="offpeak")


def create_wallet_chain() -> None:
    op.create_table(
        "wallet_chain",
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("spent", sa.Numeric(78, 0), nullable=False),
        sa.Column("refunded", sa.Numeric(78, 0), nullable=False),
        sa.CheckConstraint("refunded >= 0", name=op.f("ck_wallet_chain_refunded")),
        sa.CheckConstraint("spent >= 0", name=op.f("ck_wallet_chain_spent")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_wallet_chain")),
        schema="offpeak",
    )


def create_withdrawal() -> None:
    op.create_table(
        "withdrawal",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("payer", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("max_fee", sa.BigInteger(), nullable=False),
        sa.Column("fee", sa.BigInteger(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("reason", sa.Text()),
        sa.Column("event_id", sa.Uuid()),
        sa.CheckConstraint(
            "(state = 'failed') = (reason IS NOT NULL)", name=op.f("ck_withdrawal_failed")
        ),
        sa.CheckConstraint(
            "(state = 'paid') = (event_id IS NOT NULL)", name=op.f("ck_withdrawal_paid")
        ),
        sa.CheckConstraint(
            "(state = 'pending') = (ended_at IS NULL)", name=op.f("ck_withdrawal_ended")
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'paid', 'failed')", name=op.f("ck_withdrawal_state")
        ),
        sa.CheckConstraint("amount > 0", name=op.f("ck_withdrawal_amount")),
        sa.CheckConstraint(
            "fee >= 0 AND fee <= max_fee AND fee < amount", name=op.f("ck_withdrawal_fee_within")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_withdrawal")),
        sa.UniqueConstraint("digest", name=op.f("uq_withdrawal_digest")),
        sa.UniqueConstraint("payer", "nonce", name=op.f("uq_withdrawal_payer_nonce")),
        schema="offpeak",
    )
    op.create_index("ix_withdrawal_account_id", "withdrawal", ["account_id", "id"], schema="offpeak")
    op.create_index("ix_withdrawal_pending", "withdrawal", ["deadline"], schema="offpeak", postgresql_where=sa.text("state = 'pending'"))


def create_anchor() -> None:
    op.create_table(
        "anchor",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("anchored_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["event_id"], ["offpeak.chain_event.id"], name=op.f("fk_anchor_event_id_chain_event")
        ),
        sa.PrimaryKeyConstraint("size", name=op.f("pk_anchor")),
        sa.UniqueConstraint("event_id", name=op.f("uq_anchor_event_id")),
        schema="offpeak",
    )


def create_chain_attempt() -> None:
    op.create_table(
        "chain_attempt",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("transaction_id", sa.Uuid(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("max_fee", sa.Numeric(78, 0), nullable=False),
        sa.Column("priority_fee", sa.Numeric(78, 0), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("broadcast_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("max_fee > 0", name=op.f("ck_chain_attempt_max_fee")),
        sa.CheckConstraint("priority_fee >= 0", name=op.f("ck_chain_attempt_priority_fee")),
        sa.ForeignKeyConstraint(
            ["transaction_id"],
            ["offpeak.chain_transaction.id"],
            name=op.f("fk_chain_attempt_transaction_id_chain_transaction"),
        ),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_chain_attempt")),
        schema="offpeak",
    )
    op.create_index(op.f("ix_offpeak_chain_attempt_transaction_id"), "chain_attempt", ["transaction_id"], schema="offpeak")


def create_suspense_claim() -> None:
    op.create_table(
        "suspense_claim",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("payer", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("credited_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(
            "(state = 'credited') = (credited_at IS NOT NULL)",
            name=op.f("ck_suspense_claim_credited"),
        ),
        sa.CheckConstraint(
            "state IN ('requested', 'credited')", name=op.f("ck_suspense_claim_state")
        ),
        sa.ForeignKeyConstraint(
            ["event_id"],
            ["offpeak.chain_event.id"],
            name=op.f("fk_suspense_claim_event_id_chain_event"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suspense_claim")),
        sa.UniqueConstraint("digest", name=op.f("uq_suspense_claim_digest")),
        sa.UniqueConstraint("event_id", name=op.f("uq_suspense_claim_event_id")),
        schema="offpeak",
    )


def create_wallet_exit() -> None:
    op.create_table(
        "wallet_exit",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("payer", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(78, 0), nullable=False),
        sa.Column("ready_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("clearing", sa.BigInteger(), nullable=False),
        sa.Column("replaced_by", sa.Uuid()),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(
            "(state = 'open') = (ended_at IS NULL)", name=op.f("ck_wallet_exit_ended")
        ),
        sa.CheckConstraint(
            "(state = 'replaced') = (replaced_by IS NOT NULL)", name=op.f("ck_wallet_exit_replaced")
        ),
        sa.CheckConstraint("state = 'open' OR clearing = 0", name=op.f("ck_wallet_exit_cleared")),
        sa.CheckConstraint(
            "state IN ('open', 'finalized', 'cancelled', 'reduced', 'lapsed', 'replaced', 'orphaned')",
            name=op.f("ck_wallet_exit_state"),
        ),
        sa.CheckConstraint("clearing >= 0", name=op.f("ck_wallet_exit_clearing")),
        sa.ForeignKeyConstraint(
            ["id"], ["offpeak.chain_event.id"], name=op.f("fk_wallet_exit_id_chain_event")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wallet_exit")),
        schema="offpeak",
    )
    op.create_index("uq_wallet_exit_open", "wallet_exit", ["account_id"], unique=True, schema="offpeak", postgresql_where=sa.text("state = 'open'"))
