"""The tables of jobs, and the version of the functions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    create_request_authorization()
    create_job()
    index_job()
    create_lease()
    create_usage_record()
    create_cost_entry()
    create_schema_functions()


def create_request_authorization() -> None:
    op.create_table(
        "request_authorization",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("payer", sa.Text(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("quote_digest", sa.LargeBinary(), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("quote", sa.LargeBinary(), nullable=False),
        sa.Column("quote_signature", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_request_authorization")),
        sa.UniqueConstraint(
            "nonce", "account_id", name=op.f("uq_request_authorization_nonce_account_id")
        ),
        sa.UniqueConstraint(
            "quote_digest",
            "account_id",
            name=op.f("uq_request_authorization_quote_digest_account_id"),
        ),
        schema="offpeak",
    )


def create_job() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("authorization_digest", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("group", sa.Text(), nullable=True),
        sa.Column("lease_id", sa.Uuid(), nullable=True),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("max_output_tokens", sa.Integer(), nullable=False),
        sa.Column("input_rate", sa.BigInteger(), nullable=False),
        sa.Column("output_rate", sa.BigInteger(), nullable=False),
        sa.Column("per_request", sa.BigInteger(), nullable=False),
        sa.Column("ask_ceiling", sa.BigInteger(), nullable=False),
        sa.Column("model_revision", sa.LargeBinary(), nullable=False),
        sa.Column("run_seconds", sa.Integer(), nullable=False),
        sa.Column("faults", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("dispatches", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column(
            "failed_agents", postgresql.ARRAY(sa.Uuid()), server_default="{}", nullable=False
        ),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("request", sa.LargeBinary(), nullable=True),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("content_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finish", sa.Text(), nullable=True),
        sa.Column("failure_code", sa.Text(), nullable=True),
        sa.Column("failure_detail", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state IN ('accepted', 'running')) = (lease_id IS NOT NULL)", name=op.f("ck_job_lease")
        ),
        sa.CheckConstraint(
            "(state IN ('completed', 'failed', 'cancelled', 'expired')) = (ended_at IS NOT NULL)",
            name=op.f("ck_job_ended"),
        ),
        sa.CheckConstraint("kind IN ('interactive', 'batch')", name=op.f("ck_job_kind")),
        sa.CheckConstraint(
            "state IN ('queued', 'accepted', 'running', 'completed', 'failed', 'cancelled', 'expired')",
            name=op.f("ck_job_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("authorization_digest", name=op.f("uq_job_authorization_digest")),
        schema="offpeak",
    )


def index_job() -> None:
    op.create_index("ix_job_account", "job", ["account_id", "id"], unique=False, schema="offpeak")
    op.create_index(
        "ix_job_content",
        "job",
        ["content_until"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("request IS NOT NULL"),
    )
    op.create_index(
        "ix_job_open",
        "job",
        ["deadline_at"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("state IN ('queued', 'accepted', 'running')"),
    )
    op.create_index(
        "ix_job_queued",
        "job",
        ["release", "region"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("state = 'queued'"),
    )


def create_lease() -> None:
    op.create_table(
        "lease",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ask", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("statement", sa.LargeBinary(), nullable=True),
        sa.Column("statement_signature", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "(state IN ('active', 'ending')) = (ended_at IS NULL)", name=op.f("ck_lease_ended")
        ),
        sa.CheckConstraint(
            "state IN ('active', 'ending', 'done', 'lost', 'reclaimed')",
            name=op.f("ck_lease_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease")),
        schema="offpeak",
    )
    op.create_index(
        "ix_lease_occupying",
        "lease",
        ["agent_id", "deployment_id"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("state IN ('active', 'ending')"),
    )
    op.create_index(
        op.f("ix_offpeak_lease_job_id"), "lease", ["job_id"], unique=False, schema="offpeak"
    )


def create_usage_record() -> None:
    op.create_table(
        "usage_record",
        sa.Column("record_id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("payer_seq", sa.BigInteger(), nullable=False),
        sa.Column("previous_record", sa.Uuid(), nullable=True),
        sa.Column("supplier_statement", sa.LargeBinary(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("charge", sa.BigInteger(), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("response_digest", sa.LargeBinary(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("include_by", sa.DateTime(timezone=True), nullable=False),
        sa.Column("flags", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("signature", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "(signature IS NULL) = (key_id IS NULL)", name=op.f("ck_usage_record_signed_by")
        ),
        sa.CheckConstraint(
            "cached_input_tokens <= input_tokens", name=op.f("ck_usage_record_cached")
        ),
        sa.CheckConstraint("held = charge + released", name=op.f("ck_usage_record_conserved")),
        sa.CheckConstraint(
            "reasoning_tokens <= output_tokens", name=op.f("ck_usage_record_reasoning")
        ),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_usage_record")),
        sa.UniqueConstraint(
            "account_id", "payer_seq", name=op.f("uq_usage_record_account_id_payer_seq")
        ),
        schema="offpeak",
    )
    op.create_index(
        "ix_usage_record_completed",
        "usage_record",
        ["completed_at"],
        unique=False,
        schema="offpeak",
    )
    op.create_index(
        "ix_usage_record_unsigned",
        "usage_record",
        ["record_id"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("signature IS NULL"),
    )


def create_cost_entry() -> None:
    op.create_table(
        "cost_entry",
        sa.Column("lease_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("slot_ms", sa.BigInteger(), nullable=False),
        sa.Column("booked_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('served', 'failed_work', 'overhead')", name=op.f("ck_cost_entry_kind")
        ),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_cost_entry_amount")),
        sa.CheckConstraint("slot_ms >= 0", name=op.f("ck_cost_entry_slot_ms")),
        sa.PrimaryKeyConstraint("lease_id", "kind", name=op.f("pk_cost_entry")),
        schema="offpeak",
    )
    op.create_index(
        "ix_cost_entry_release",
        "cost_entry",
        ["release", "booked_at"],
        unique=False,
        schema="offpeak",
    )


def create_schema_functions() -> None:
    op.create_table(
        "schema_functions",
        sa.Column("only_row", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.CheckConstraint("only_row", name=op.f("ck_schema_functions_only_row")),
        sa.PrimaryKeyConstraint("only_row", name=op.f("pk_schema_functions")),
        schema="offpeak",
    )
