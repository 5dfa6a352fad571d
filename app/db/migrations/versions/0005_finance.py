"""Accounting periods, corrections, and transfers by time."""

import sqlalchemy as sa
from alembic import op

from app.db.tables.base import Xid8

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    create_accounting_period()
    create_correction()
    op.create_index(
        "ix_transfer_created",
        "transfer",
        ["created_at"],
        schema="offpeak",
        postgresql_using="brin",
        postgresql_with={"autosummarize": "on"},
    )


def create_accounting_period() -> None:
    op.create_table(
        "accounting_period",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("soft_closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_leaf", sa.BigInteger(), nullable=True),
        sa.Column("closed_xid", Xid8(), nullable=True),
        sa.CheckConstraint(
            "state IN ('open', 'soft-closed', 'closed')",
            name=op.f("ck_accounting_period_state"),
        ),
        sa.CheckConstraint("starts_at < ends_at", name=op.f("ck_accounting_period_interval")),
        sa.CheckConstraint(
            "(state = 'open') = (soft_closed_at IS NULL)",
            name=op.f("ck_accounting_period_soft_closed"),
        ),
        sa.CheckConstraint(
            "(state = 'closed') = (closed_at IS NOT NULL) AND (state = 'closed') ="
            " (closed_leaf IS NOT NULL) AND (state = 'closed') = (closed_xid IS NOT NULL)",
            name=op.f("ck_accounting_period_closed"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_accounting_period")),
        sa.UniqueConstraint("ends_at", name=op.f("uq_accounting_period_ends_at")),
        schema="offpeak",
    )


def create_correction() -> None:
    op.create_table(
        "correction",
        sa.Column("record_id", sa.Uuid(), nullable=False),
        sa.Column("corrects", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("because", sa.Text(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("record_id <> corrects", name=op.f("ck_correction_another")),
        sa.CheckConstraint("because <> ''", name=op.f("ck_correction_reason")),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_correction")),
        sa.UniqueConstraint("corrects", name=op.f("uq_correction_corrects")),
        schema="offpeak",
    )
    op.create_index(
        op.f("ix_offpeak_correction_job_id"), "correction", ["job_id"], schema="offpeak"
    )
