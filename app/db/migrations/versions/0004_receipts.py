"""The receipt log, and each sealed record's place in it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    place_records()
    create_receipt_batch()
    create_log()


def place_records() -> None:
    op.add_column(
        "usage_record", sa.Column("leaf_index", sa.BigInteger(), nullable=True), schema="offpeak"
    )
    op.add_column(
        "usage_record", sa.Column("leaf_hash", sa.LargeBinary(), nullable=True), schema="offpeak"
    )
    op.create_unique_constraint(
        op.f("uq_usage_record_leaf_index"), "usage_record", ["leaf_index"], schema="offpeak"
    )
    for name, condition in (
        ("leaf", "(leaf_index IS NULL) = (leaf_hash IS NULL)"),
        ("sealed_signed", "leaf_index IS NULL OR signature IS NOT NULL"),
    ):
        op.create_check_constraint(
            op.f(f"ck_usage_record_{name}"), "usage_record", condition, schema="offpeak"
        )
    op.create_index(
        "ix_usage_record_unsealed",
        "usage_record",
        ["account_id", "payer_seq"],
        schema="offpeak",
        postgresql_where=sa.text("leaf_index IS NULL"),
    )


def create_receipt_batch() -> None:
    op.create_table(
        "receipt_batch",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("header", sa.LargeBinary(), nullable=False),
        sa.Column("chunk_roots", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint('"end" > start', name=op.f("ck_receipt_batch_not_empty")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_receipt_batch")),
        sa.UniqueConstraint("start", name=op.f("uq_receipt_batch_start")),
        schema="offpeak",
    )


def create_log() -> None:
    op.create_table(
        "log_entry",
        sa.Column("index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("entry", sa.LargeBinary(), nullable=False),
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.Column("batch_number", sa.BigInteger(), nullable=True),
        sa.Column("logged_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('batch-header', 'key-rotation', 'export-manifest')",
            name=op.f("ck_log_entry_kind"),
        ),
        sa.CheckConstraint(
            "(kind = 'batch-header') = (batch_number IS NOT NULL)",
            name=op.f("ck_log_entry_header_of_batch"),
        ),
        sa.CheckConstraint("index >= 0", name=op.f("ck_log_entry_index")),
        sa.PrimaryKeyConstraint("index", name=op.f("pk_log_entry")),
        sa.UniqueConstraint("leaf_hash", name=op.f("uq_log_entry_leaf_hash")),
        sa.UniqueConstraint("batch_number", name=op.f("uq_log_entry_batch_number")),
        schema="offpeak",
    )
    op.create_table(
        "log_node",
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("index", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("level", "index", name=op.f("pk_log_node")),
        schema="offpeak",
    )
    op.create_table(
        "log_checkpoint",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.Column("signed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("size", name=op.f("pk_log_checkpoint")),
        schema="offpeak",
    )
