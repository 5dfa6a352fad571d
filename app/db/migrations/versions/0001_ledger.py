"""The tables of the ledger."""

import sqlalchemy as sa
from alembic import op

from app.db.tables import Xid8

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_account()
    create_wallet_balance()
    create_hold()
    create_hold_resolution()
    create_transfer()
    create_house_balance()
    create_ledger_halt()


def create_account() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "kind IN ('wallet', 'supplier', 'fee', 'treasury', 'withdraw_clearing', 'deposit_clearing', 'suspense')",
            name=op.f("ck_account_kind"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("owner", "asset", "kind", name=op.f("uq_account_owner_asset_kind")),
        schema="offpeak",
    )


def create_wallet_balance() -> None:
    op.create_table(
        "wallet_balance",
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("open_jobs", sa.Integer(), nullable=False),
        sa.Column("payer_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_record", sa.Uuid(), nullable=True),
        sa.CheckConstraint("available >= 0", name=op.f("ck_wallet_balance_available")),
        sa.CheckConstraint("held >= 0", name=op.f("ck_wallet_balance_held")),
        sa.CheckConstraint("open_jobs >= 0", name=op.f("ck_wallet_balance_open_jobs")),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["offpeak.account.id"],
            name=op.f("fk_wallet_balance_account_id_account"),
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_wallet_balance")),
        schema="offpeak",
        postgresql_with={"fillfactor": "50"},
    )


def create_hold() -> None:
    op.create_table(
        "hold",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_hold_amount")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hold")),
        sa.UniqueConstraint("id", "amount", name=op.f("uq_hold_id_amount")),
        schema="offpeak",
    )


def create_hold_resolution() -> None:
    op.create_table(
        "hold_resolution",
        sa.Column("hold_id", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("charged", sa.BigInteger(), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(kind = 'settled') = (charged > 0)", name=op.f("ck_hold_resolution_zero_is_a_release")
        ),
        sa.CheckConstraint(
            "kind IN ('settled', 'released', 'expired')", name=op.f("ck_hold_resolution_kind")
        ),
        sa.CheckConstraint(
            "charged + released = amount", name=op.f("ck_hold_resolution_conserved")
        ),
        sa.CheckConstraint("charged >= 0", name=op.f("ck_hold_resolution_charged")),
        sa.CheckConstraint("released >= 0", name=op.f("ck_hold_resolution_released")),
        sa.ForeignKeyConstraint(
            ["hold_id", "amount"],
            ["offpeak.hold.id", "offpeak.hold.amount"],
            name=op.f("fk_hold_resolution_hold_id_amount_hold"),
        ),
        sa.PrimaryKeyConstraint("hold_id", name=op.f("pk_hold_resolution")),
        schema="offpeak",
    )


def create_transfer() -> None:
    op.create_table(
        "transfer",
        sa.Column("ref", sa.Uuid(), nullable=False),
        sa.Column("leg", sa.SmallInteger(), nullable=False),
        sa.Column("debit", sa.Uuid(), nullable=False),
        sa.Column("credit", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("xid", Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_transfer_amount")),
        sa.CheckConstraint("debit <> credit", name=op.f("ck_transfer_two_sides")),
        sa.PrimaryKeyConstraint("ref", "leg", name=op.f("pk_transfer")),
        schema="offpeak",
    )
    op.create_index("ix_transfer_xid", "transfer", ["xid"], unique=False, schema="offpeak")


def create_house_balance() -> None:
    op.create_table(
        "house_balance",
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("up_to", Xid8(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_house_balance")),
        schema="offpeak",
    )


def create_ledger_halt() -> None:
    op.create_table(
        "ledger_halt",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "halted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("cleared_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cleared_because", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(cleared_at IS NULL) = (cleared_because IS NULL)", name=op.f("ck_ledger_halt_cleared")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_halt")),
        schema="offpeak",
    )
